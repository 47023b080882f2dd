//! Variables that a step may set for a program, if its template names them.

use orchestr8_contract::Fault;
use serde_json::Value;

use super::template::plain;

/// Names that make a program load or run something else, or find it elsewhere, each group with its reason.
const NEVER: &[(&str, &[&str])] = &[
    (
        "says where programs, libraries and files are found",
        &[
            "CDPATH",
            "CLASSPATH",
            "COMSPEC",
            "FPATH",
            "GOPATH",
            "GOROOT",
            "HOME",
            "INFOPATH",
            "LOCPATH",
            "MANPATH",
            "NLSPATH",
            "PATH",
            "PATHEXT",
            "PWD",
            "TCLLIBPATH",
            "TERMCAP",
            "TERMINFO",
            "TERMINFO_DIRS",
            "TEMP",
            "TEXINPUTS",
            "TMP",
            "TMPDIR",
            "USERPROFILE",
            "VIRTUAL_ENV",
        ],
    ),
    (
        "is run by shells when they start, or changes how they read a line",
        &[
            "ENV",
            "GLOBIGNORE",
            "IFS",
            "PROMPT_COMMAND",
            "PS0",
            "PS1",
            "PS2",
            "PS4",
            "SHELL",
            "SHELLOPTS",
            "ZDOTDIR",
        ],
    ),
    (
        "names a program that is run on the side",
        &[
            "AR",
            "AS",
            "BROWSER",
            "CC",
            "CPP",
            "CXX",
            "DIFF",
            "EDITOR",
            "FC",
            "FCEDIT",
            "LD",
            "MANPAGER",
            "NM",
            "OBJCOPY",
            "PAGER",
            "RANLIB",
            "RSYNC_RSH",
            "STRIP",
            "SUDO_ASKPASS",
            "SYSTEMD_PAGER",
            "TAR_OPTIONS",
            "VISUAL",
        ],
    ),
    (
        "holds options of a build, which can run commands",
        &[
            "CFLAGS",
            "CPPFLAGS",
            "CXXFLAGS",
            "GNUMAKEFLAGS",
            "GOENV",
            "GOFLAGS",
            "GOPROXY",
            "GOTOOLCHAIN",
            "LDFLAGS",
            "MAKEFILES",
            "MAKEFLAGS",
            "MFLAGS",
            "RUSTFLAGS",
        ],
    ),
    (
        "names a file that an interpreter or a library runs or loads when it starts",
        &[
            "AWKLIBPATH",
            "AWKPATH",
            "CURL_HOME",
            "DENO_DIR",
            "EXINIT",
            "GHCRTS",
            "GTK_MODULES",
            "GVIMINIT",
            "INPUTRC",
            "JULIA_LOAD_PATH",
            "KRB5_CONFIG",
            "OPENSSL_CONF",
            "OPENSSL_CONF_INCLUDE",
            "OPENSSL_ENGINES",
            "OPENSSL_MODULES",
            "OCAMLRUNPARAM",
            "PSMODULEPATH",
            "SCREENRC",
            "VIMINIT",
            "WGETRC",
            "XDG_CONFIG_DIRS",
            "XDG_CONFIG_HOME",
            "XDG_DATA_DIRS",
            "XDG_DATA_HOME",
        ],
    ),
    (
        "sends what a program says or trusts elsewhere",
        &[
            "ALL_PROXY",
            "CURL_CA_BUNDLE",
            "FTP_PROXY",
            "HOSTALIASES",
            "HTTPS_PROXY",
            "HTTP_PROXY",
            "LOCALDOMAIN",
            "NO_PROXY",
            "REQUESTS_CA_BUNDLE",
            "RESOLV_HOST_CONF",
            "RES_OPTIONS",
            "SSLKEYLOGFILE",
            "SSL_CERT_DIR",
            "SSL_CERT_FILE",
        ],
    ),
];

/// Beginnings of names, in the same way: families that have grown and will grow.
const NEVER_BEGINNING: &[(&str, &[&str])] = &[
    (
        "belongs to the linker, the C library or its allocator",
        &["DYLD_", "GCONV_", "GLIBC_", "LD_", "MALLOC_"],
    ),
    ("belongs to a shell", &["BASH", "FISH_", "KSH_", "ZSH"]),
    (
        "belongs to an interpreter or a runtime, which loads code by it",
        &[
            "_JAVA_", "BUN_", "CORECLR_", "COR_", "DENO_", "DOTNET_", "ELIXIR_", "ERL_", "ERLANG_", "GUILE_",
            "JAVA_", "JDK_", "JULIA_", "LUA_", "NODE_", "PERL", "PHP", "PYTHON", "RUBY", "R_",
        ],
    ),
    (
        "belongs to a build tool or a package manager, which runs code by it",
        &[
            "BUNDLE_",
            "CARGO_",
            "CMAKE_",
            "COMPOSER_",
            "CONDA_",
            "GEM_",
            "GRADLE_",
            "MAKE_",
            "MAVEN_",
            "NPM_",
            "PIP_",
            "PNPM_",
            "POETRY_",
            "RUSTC",
            "RUSTDOC",
            "RUSTUP_",
            "UV_",
            "YARN_",
        ],
    ),
    ("belongs to a program that starts others by it", &["DOCKER_", "GIT_", "LESS", "SSH_", "SUDO_", "VIM"]),
    ("belongs to this server", &["ORCHESTR8_"]),
];

/// Whether steps may be allowed to set it. The text says why not.
pub fn check(name: &str) -> Result<(), String> {
    let mut letters = name.chars();
    let is_sound = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !is_sound {
        return Err(String::from("is not a name of letters, digits and _"));
    }
    let upper = name.to_ascii_uppercase();
    let exactly = NEVER.iter().filter(|(_, names)| names.contains(&upper.as_str()));
    let beginning =
        NEVER_BEGINNING.iter().filter(|(_, starts)| starts.iter().any(|start| upper.starts_with(start)));
    match exactly.chain(beginning).next() {
        Some((why, _)) => Err(format!("{why}, so no step may set it; put it in env of the template")),
        None => Ok(()),
    }
}

/// The text of a value.
pub fn value(name: &str, value: &Value) -> Result<String, Fault> {
    plain(&format!("env.{name}"), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_or_loads_something_is_never_allowed() {
        for name in ["MODE", "WIDTH", "_x", "TZ", "LANG"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "A=B",
            "A B",
            "1A",
            "BASH_ENV",
            "BASH_FUNC_date%%",
            "BASHOPTS",
            "ENV",
            "IFS",
            "LD_PRELOAD",
            "ld_preload",
            "PATH",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "GIT_SSH_COMMAND",
            "GIT_TRACE",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUBYOPT",
            "HOME",
            "ORCHESTR8_TOKEN",
            "LESSOPEN",
            "JAVA_TOOL_OPTIONS",
            "SHELLOPTS",
            "MAKEFLAGS",
            "R_PROFILE",
            "R_PROFILE_USER",
            "DOTNET_STARTUP_HOOKS",
            "CORECLR_PROFILER_PATH",
            "OPENSSL_CONF",
            "openssl_conf",
            "ZDOTDIR",
            "GOFLAGS",
            "ERL_FLAGS",
            "JULIA_LOAD_PATH",
            "RUSTC_WRAPPER",
            "CC",
            "VIMINIT",
            "https_proxy",
            "XDG_CONFIG_HOME",
        ] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
