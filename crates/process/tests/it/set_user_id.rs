//! Programs try to leave a file that gives the rights of the server's user to every user who starts it.

use std::os::unix::fs::PermissionsExt;

use crate::attacks::{LEVELS, python};
use crate::world::World;

/// Every call that takes a mode, with a mode that has a bit of this kind.
fn attacks() -> Vec<String> {
    let call = |name: &str, number: i64, arguments: &str| {
        python(&format!(
            "libc = ctypes.CDLL(None, use_errno=True)\nr = libc.syscall({number}, {arguments})\n\
             print('{name}', r, ctypes.get_errno())\nassert r != -1"
        ))
    };
    let mut attacks: Vec<String> = [
        "cp /bin/true a && chmod 4755 a",
        "cp /bin/true a && chmod 2755 a",
        "cp /bin/true a && chmod u+s a",
        "mkdir b && chmod g+s b",
        "cp -p /bin/true a; install -m 6755 /bin/true a",
        "mkdir -m 2775 d",
    ]
    .map(str::to_owned)
    .into();
    attacks.push(python("os.close(os.open('e', os.O_CREAT | os.O_WRONLY, 0o4755))"));
    attacks.push(python("f = os.open('f', os.O_CREAT | os.O_WRONLY, 0o755); os.fchmod(f, 0o6755)"));
    attacks.push(python("os.mknod('g', 0o104755)"));
    attacks.push(python("os.mkdir('h', 0o2755); assert os.stat('h').st_mode & 0o6000"));
    attacks.push(python("open('i', 'w').close(); os.setxattr('i', 'security.capability', b'x' * 20)"));
    // fchmodat2 has the same number everywhere.
    attacks.push(call("fchmodat2", 452, "-100, b'work', 0o4755, 0"));
    attacks.push(call("setxattrat", 463, "-100, b'i', 0, b'security.capability', None, 0"));
    if cfg!(target_arch = "x86_64") {
        let create = "os.O_CREAT | os.O_WRONLY | os.O_EXCL";
        attacks.push(call("open", 2, &format!("b'j', {create}, 0o4755")));
        attacks.push(call("openat", 257, &format!("-100, b'k', {create}, 0o4755")));
        attacks.push(call("creat", 85, "b'l', 0o4755"));
        attacks.push(call("chmod", 90, "b'.', 0o2755"));
        attacks.push(call("fchmodat", 268, "-100, b'.', 0o2755"));
        attacks.push(call("mknod", 133, "b'm', 0o104755, 0"));
        attacks.push(call("mknodat", 259, "-100, b'n', 0o104755, 0"));
        // The upper half of an argument is not the kernel's business, nor the filter's.
        attacks.push(call("chmod", 90, "b'.', ctypes.c_ulong(0xffffffff00000000 | 0o4755)"));
        let how = "ctypes.create_string_buffer(__import__('struct').pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0))";
        attacks.push(call("openat2", 437, &format!("-100, b'o', {how}, 24")));
    }
    attacks
}

#[tokio::test]
async fn no_file_gets_the_rights_of_another_user() {
    for level in LEVELS {
        for attack in attacks() {
            let world = World::at(level);
            let ran = world.shell(&attack).await;
            assert_ne!(ran.code, Some(0), "{level} {attack}: {}", ran.output);
            let mut folders = vec![world.path("work")];
            while let Some(folder) = folders.pop() {
                let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
                assert_eq!(mode(&folder) & 0o6000, 0, "{level} {attack}: {}", folder.display());
                for entry in std::fs::read_dir(&folder).unwrap() {
                    let path = entry.unwrap().path();
                    assert_eq!(mode(&path) & 0o6000, 0, "{level} {attack}: {}", path.display());
                    folders.extend(path.is_dir().then_some(path));
                }
            }
        }
    }
}

#[tokio::test]
async fn ordinary_modes_and_attributes_can_be_set() {
    for level in LEVELS {
        let world = World::at(level);
        let script = "set -e; cp /bin/true a; chmod 755 a; ./a; chmod u-w,o-rx a; mkdir -m 700 b; chmod 1777 b; mkfifo c; \
                      install -m 640 /bin/true d; tar cf t.tar a b; mkdir x; tar xf t.tar -C x; stat -c %a a b d x/b";
        let ran = world.shell(script).await;
        assert_eq!((ran.code, ran.output.as_str()), (Some(0), "550\n1777\n640\n1777\n"), "{level}");
        let own = python("os.close(os.open('e', os.O_CREAT | os.O_RDWR, 0o600)); os.mkdir('f', 0o755)");
        assert_eq!(world.shell(&own).await.output, "SUCCEEDED\n", "{level}");
    }
}
