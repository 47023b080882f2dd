//! Texts that break rules, the ways around them that were tried, and texts that only look so.

use super::*;

fn check(path: &str, text: &str, claimed: Option<Purpose>) -> Result<(), (Code, Value)> {
    super::check(&Inside::own(path.to_owned()), text, claimed)
        .map_err(|refusal| (refusal.code, refusal.details["violations"][0]["rule"].clone()))
}

#[test]
fn every_rule_of_every_language_finds_what_it_is_for() {
    let rust = Code::RustPolicyViolation;
    let cases = [
        ("a.rs", "fn f() { x . unwrap() }", rust, "rust-unwrap"),
        ("a.rs", "fn f() { Option::unwrap(x) }", rust, "rust-unwrap"),
        ("a.rs", "fn f() { Result::<u8, ()>::unwrap(x) }", rust, "rust-unwrap"),
        ("a.rs", "fn f() { xs.map(Option::unwrap); }", rust, "rust-unwrap"),
        ("a.rs", "fn f() { println!(\"{}\", x.unwrap()) }", rust, "rust-unwrap"),
        ("a.rs", "fn f() { vec![Option::unwrap(x)]; }", rust, "rust-unwrap"),
        ("a.rs", "fn f() { x.r#unwrap() }", rust, "rust-unwrap"),
        ("a.rs", "fn f() { x\n    // a comment\n    .unwrap() }", rust, "rust-unwrap"),
        ("a.RS", "fn f() { x.unwrap() }", rust, "rust-unwrap"),
        ("a.rs", "fn f() { x.expect(\"y\") }", rust, "rust-expect"),
        ("a.rs", "fn f() { Result::expect_err(x, \"\") }", rust, "rust-expect"),
        ("a.rs", "fn f() { panic!(\"y\") }", rust, "rust-panic"),
        ("a.rs", "fn f() { std :: panic ! {\"y\"} }", rust, "rust-panic"),
        ("a.rs", "fn f() { vec![panic!()]; }", rust, "rust-panic"),
        ("a.rs", "fn f() { std::panic::panic_any(1) }", rust, "rust-panic"),
        ("a.rs", "fn f() { unreachable!() }", rust, "rust-unreachable"),
        ("a.rs", "fn f() { todo!() }", rust, "rust-todo"),
        ("a.rs", "fn f() { unimplemented!() }", rust, "rust-unimplemented"),
        ("a.rs", "fn f() { unsafe { *p } }", rust, "rust-unsafe"),
        ("a.rs", "unsafe impl Send for A {}", rust, "rust-unsafe"),
        ("a.rs", "macro_rules! m { () => { unsafe { 1 } } }", rust, "rust-unsafe"),
        ("a.rs", "fn f() { let _ = f(); }", rust, "rust-ignored-result"),
        ("a.rs", "fn f() { let _: Result<(), ()> = a.b.f(); }", rust, "rust-ignored-result"),
        ("a.rs", "fn f() { _ = f(); }", rust, "rust-ignored-result"),
        ("a.rs", "fn f() { f().ok(); }", rust, "rust-ignored-result"),
        ("a.rs", "fn f() { if let Err(_) = f() {} }", rust, "rust-swallowed-error"),
        ("a.rs", "fn f() { match f() { Ok(x) => g(x), Err(_) => {} } }", rust, "rust-swallowed-error"),
        ("a.rs", "fn f() { match f() { Ok(x) => g(x), Err(e) => () } }", rust, "rust-swallowed-error"),
        (
            "run",
            "#!/usr/bin/env python3\ntry:\n    f()\nexcept E: pass\n",
            Code::PolicyViolation,
            "python-swallowed-error",
        ),
        ("run", "#!/bin/sh -e\nmake || true\n", Code::PolicyViolation, "shell-swallowed-error"),
        ("a.rs", "fn broken( { x.unwrap() ", rust, "rust-unwrap"),
    ];
    for (path, text, code, rule) in cases {
        assert_eq!(check(path, text, None), Err((code, rule.into())), "{path}: {text}");
    }
}

#[test]
fn swallowed_errors_are_found_however_they_are_written() {
    let cases = [
        ("a.ts", "try { f() } catch (e) { }", "js-swallowed-error"),
        ("a.js", "try { f() } catch {}", "js-swallowed-error-unbound"),
        ("a.js", "try { f() } catch { ; }", "js-swallowed-error-unbound"),
        ("a.js", "try { f() } catch (e) { /* fine */ }", "js-swallowed-error"),
        ("a.js", "try { f() } catch (e) { return; }", "js-swallowed-error"),
        ("a.js", "try { f() } catch (e) { void e; }", "js-swallowed-error"),
        ("a.js", "try { f() } catch (e) { e; }", "js-swallowed-error"),
        ("a.js", "try { f() } catch (e) { {} }", "js-swallowed-error"),
        ("a.jsx", "p.catch(() => {})", "js-swallowed-rejection"),
        ("a.TS", "p.catch(e=>{})", "js-swallowed-rejection-bound"),
        ("a.ts", "p.catch((e: unknown) => { })", "js-swallowed-rejection-bound"),
        ("a.js", "p.catch(async function () {})", "js-swallowed-rejection"),
        ("a.js", "p?.catch(() => undefined)", "js-swallowed-rejection"),
        ("a.js", "p['catch'](e => void 0)", "js-swallowed-rejection-bound"),
        ("a.js", "p.then(f, () => {})", "js-swallowed-rejection"),
        ("a.js", "p.catch(noop)", "js-swallowed-rejection"),
        ("a.tsx", "const a = <A b={p.catch(() => null)} />", "js-swallowed-rejection"),
        ("a.mjs", "throw new Error('not implemented')", "js-not-implemented"),
        ("a.py", "try:\n    f()\nexcept:\n    pass\n", "python-bare-except"),
        ("a.py", "try:\n    f()\nexcept ValueError: pass\n", "python-swallowed-error"),
        ("a.py", "try:\n    f()\nexcept (A, B): pass\n", "python-swallowed-error"),
        ("a.py", "try:\n    f()\nexcept (A, B) as e:\n    ...\n", "python-swallowed-named-error"),
        ("a.py", "try:\n    f()\nexcept* A:\n    'fine'\n", "python-swallowed-error"),
        ("a.PY", "try:\n    f()\nexcept A:\n    # fine\n    pass\n", "python-swallowed-error"),
        ("a.py", "try:\n    f()\nexcept a.b.C[int]:\n    None\n", "python-swallowed-error"),
        ("a.py", "with contextlib.suppress(OSError):\n    f()\n", "python-suppressed-error"),
        ("a.py", "raise NotImplementedError()", "python-not-implemented"),
        ("a.py", "raise builtins.NotImplementedError('x') from e", "python-not-implemented"),
        ("a.go", "package m\nfunc f() { _ = err }", "go-ignored-error"),
        ("a.go", "package m\nfunc f() { _, _ = g() }", "go-ignored-error"),
        ("a.go", "package m\nfunc f() { if err != nil { } }", "go-swallowed-error"),
        ("a.go", "package m\nfunc f() { if e := g(); nil != e { // fine\n } }", "go-swallowed-error"),
        ("a.go", "package m\nfunc f() { defer func() { recover() }() }", "go-swallowed-panic"),
        ("a.go", "package m\nfunc f() { panic(\"x\") }", "go-panic"),
        ("a.sh", "make || true", "shell-swallowed-error"),
        ("a.sh", "make || :", "shell-swallowed-error"),
        ("a.sh", "make ||\n  { true; }", "shell-swallowed-error"),
        ("a.SH", "make || /bin/true", "shell-swallowed-error"),
        ("a.sh", "make || \"tr\"ue", "shell-swallowed-error"),
        ("a.sh", "make || exit 0", "shell-swallowed-error"),
        ("a.sh", "f() { make || return 0; }", "shell-swallowed-error"),
        ("a.sh", "if ! make; then :; fi", "shell-swallowed-error"),
        ("a.sh", "set +e", "shell-ignored-errors"),
        ("a.bash", "set +xeu", "shell-ignored-errors"),
        ("a.sh", "set +o errexit", "shell-ignored-errors"),
        ("a.sh", "trap '' ERR", "shell-ignored-errors"),
        ("a.c", "int f(void) { if (rc) {} return 0; }", "c-empty-branch"),
        ("a.c", "int f(void) { if (rc < 0) ; return 0; }", "c-empty-branch"),
        ("a.c", "int f(void) { abort(); }", "c-abort"),
        ("a.h", "#error not implemented\n", "c-not-implemented"),
        ("A.java", "class A { void f() { try { g(); } catch (E e) { } } }", "java-swallowed-error"),
        (
            "A.java",
            "class A { void f() { try { g(); } catch (E | F e) { /* fine */ ; } } }",
            "java-swallowed-error",
        ),
        ("A.java", "class A { void f() { throw new NotImplementedException(); } }", "java-not-implemented"),
        (
            "A.java",
            "class A { void f() { throw new UnsupportedOperationException(\"Not implemented yet\"); } }",
            "java-not-implemented",
        ),
    ];
    for (path, text, rule) in cases {
        assert_eq!(check(path, text, None), Err((Code::PolicyViolation, rule.into())), "{path}: {text}");
    }
}

#[test]
fn placeholders_and_hidden_characters_are_found_in_every_language() {
    for (path, text) in [
        ("a.rs", "// Todo: more"),
        ("a.rs", "/// Todo\nfn f() {}"),
        ("a.rs", "/* a\n * Fixme\n */"),
        ("a.c", "/* Todo */ int a;"),
        ("a.h", "int a; // Xxx"),
        ("A.java", "/** Todo: write it */ class A {}"),
        ("a.go", "/* FixMe */"),
        ("a.py", "# not implemented yet"),
        ("a.py", "def f():\n    '''Todo: write it'''\n"),
        ("a.py", "# To\u{ad}do"),
        ("a.sh", "make # Todo"),
        ("a.ts", "const a = 1; // hack"),
        ("a.tsx", "const a = <A>{/* Todo */}</A>"),
        ("a.cpp", "int a; // Todo"),
        ("a.rb", "a = 1 # Todo"),
        ("a.sql", "select 1 -- Todo"),
        ("a.html", "<p><!-- Todo --></p>"),
        ("a.kt", "/* implement later */"),
        ("Makefile", "all: # Todo"),
        ("Dockerfile", "# Fixme\nFROM a"),
        ("a.php", "<?php // Todo"),
    ] {
        let (code, rule) = check(path, text, None).unwrap_err();
        assert_eq!(code, Code::PolicyViolation, "{path}");
        assert!(rule.as_str().unwrap().starts_with("placeholder-"), "{path}: {rule}");
    }
    for path in ["a.rs", "a.py", "a.c", "A.java", "a.md", "a.json", "Makefile", "notes"] {
        for (text, rule) in [
            ("a\u{202e}b", "hidden-bidirectional"),
            ("/* \u{2066} */", "hidden-bidirectional"),
            ("a\u{200f}", "hidden-bidirectional"),
            ("a\u{200b}b", "hidden-character"),
            ("a\u{e0041}", "hidden-character"),
            ("a\u{3164}b", "hidden-character"),
            ("a\u{1b}[2Kb", "hidden-character"),
            ("a\rb", "hidden-character"),
            ("a\0b", "hidden-character"),
            ("x\n\u{feff}y", "hidden-character"),
        ] {
            let found = super::check(&Inside::own(path.to_owned()), text, None).unwrap_err().details;
            let rules = found["violations"].as_array().unwrap();
            assert!(rules.iter().any(|found| found["rule"] == rule), "{path} {text:?}: {rules:?}");
        }
    }
}

#[test]
fn quotes_comments_other_words_and_other_files_are_left_alone() {
    for (path, text) in [
        ("a.rs", "fn f() { let s = \"x.unwrap() todo!()\"; } // it never panics and has no unsafe"),
        ("a.rs", "fn f() { x.unwrap_or(0); let c = '\"'; r#\"panic!\"#; }"),
        ("a.rs", "fn f() { let todos = 1; } /* a // b */ fn g<'a>(x: &'a str) {}"),
        ("a.rs", "fn f() { let _ = 1; let _guard = lock(); if let Err(e) = f() { log(e) } }"),
        ("a.rs", "fn f() -> Option<u8> { g().ok() }\nfn expect(a: u8) { unwrap_all(a) }"),
        (
            "a.rs",
            "#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() { f().unwrap(); panic!(); let _ = f(); }\n}",
        ),
        ("a.rs", "#[test]\nfn t() { f().unwrap(); }"),
        ("a.js", "const s = `catch (e) {}`; try {} catch (e) { log(e) }"),
        ("a.js", "try { f() } catch { g() } finally {}\np.catch(e => log(e)); p.catch(() => {}.a)"),
        ("a.js", "#!/usr/bin/env node\nconst a = b < c > (d)"),
        ("a.ts", "const a = <T,>(x: T) => x; function f(): void {}"),
        ("a.py", "s = \"\"\"except: pass\"\"\"\n"),
        ("a.py", "try:\n    f()\nexcept A:\n    g()\nelse:\n    pass\n"),
        ("a.py", "def f(self): ...\n"),
        ("a.sh", "make || exit 1\ntrue && make\nset -e\necho '|| true'\n"),
        ("a.go", "package m\nfunc f() { v, _ := m[k]; if err != nil { return err }; _ = v }"),
        ("a.c", "int f(void) { if (a) {} else { g(); } return 0; }"),
        ("A.java", "class A { void f() { try { g(); } catch (E e) { log(e); } } }"),
        ("README.md", "Todo: x.unwrap()"),
        ("Makefile", "make || true"),
        (
            "a.md",
            "A family \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} and \u{2764}\u{fe0f}, naïve, 日本語\r\n",
        ),
        ("a.txt", "\u{feff}with a mark of its encoding"),
    ] {
        assert_eq!(check(path, text, None), Ok(()), "{path}: {text}");
    }
}

#[test]
fn a_role_that_the_path_does_not_have_is_no_way_around() {
    let text = "fn f() { x.unwrap() }";
    let verification = Some(Purpose::Verification);
    assert_eq!(check("tests/a.rs", text, verification), Ok(()));
    assert_eq!(check("tests/a.rs", text, None), Ok(()));
    assert!(check("tests/a.rs", text, Some(Purpose::Executable)).is_err());
    assert!(check("tests/a.rs", "fn f() { unsafe {} }", verification).is_err());
    let refusal = super::check(&Inside::own("src/main.rs".into()), text, verification).unwrap_err();
    assert!(refusal.code == Code::RustPolicyViolation && refusal.message.contains("role VERIFICATION"));
    for dodge in [
        "#[cfg(not(test))]\nmod tests { fn f() { x.unwrap(); } }",
        "#[cfg(any(test, unix))]\nfn f() { x.unwrap(); }",
        "#[cfg(test)]\nmod tests {}\nfn f() { x.unwrap(); }",
        "#[cfg(test)]\nuse a::b;\nfn f() { x.unwrap(); }",
        "mod m { #[test] }\nfn f() { x.unwrap(); }",
    ] {
        assert!(check("src/a.rs", dodge, None).is_err(), "{dodge}");
    }
}

#[test]
fn texts_that_take_long_to_read_are_refused_and_deep_ones_are_read() {
    let deep = format!("fn f() {{ {}x.unwrap(){} }}", "(".repeat(20_000), ")".repeat(20_000));
    assert!(check("a.rs", &deep, None).is_err());
    let long = "a".repeat(limits::CODE_BYTES + 1);
    assert_eq!(check("a.py", &long, None), Err((Code::PolicyViolation, "code-too-large".into())));
    for (path, piece) in [
        ("a.rs", "fn f() { g(1); }\n"),
        ("a.ts", "const a = { b: [1, 2] };\n"),
        ("a.sh", "echo a | grep b\n"),
    ] {
        assert_eq!(check(path, &piece.repeat(20_000), None), Ok(()), "{path}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

    /// Whatever is taken for code: it is read to its end, and what is found has a line of the text.
    #[test]
    fn any_text_is_read(
        path in "(a\\.(rs|ts|js|py|sh|go|c|java|cpp|sql|html)|run)",
        pieces in proptest::collection::vec(
            "(#!/bin/sh|fn f|unwrap|catch|except|\\|\\||true|if|\\{|\\}|\\(|\\)|\\[|#|//|/\\*|\\*/|'|\"|`|:|;|!|\\n|    |<<E|\\\\|\\PC{0,4}|\u{202e})",
            0..60,
        ),
    ) {
        let text = pieces.concat();
        let lines = text.split('\n').count();
        if let Err(refusal) = super::check(&Inside::own(path), &text, None) {
            for violation in refusal.details["violations"].as_array().unwrap() {
                let line = violation["line"].as_u64().unwrap();
                proptest::prop_assert!(line >= 1 && line <= lines as u64, "{violation} of {text:?}");
            }
        }
        crate::plan::lint(&text);
    }
}
