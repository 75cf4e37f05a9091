//! Packages as registries keep them, made here: tar in gzip, and zip, both without compression.

/// A file of an archive: its path and its content.
pub(super) type File<'a> = (&'a str, &'a str);

/// A `.tgz`.
pub(super) fn tgz(files: &[File<'_>]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (path, content) in files {
        tar.extend(header(path, content.len()));
        tar.extend(content.as_bytes());
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    gzip(&tar)
}

fn header(path: &str, size: usize) -> [u8; 512] {
    let mut block = [0; 512];
    let mut put = |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, path);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = block.iter().copied().map(u32::from).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut chunks = data.chunks(0xffff).peekable();
    while let Some(chunk) = chunks.next() {
        let size = u16::try_from(chunk.len()).expect("a chunk is that small");
        out.push(u8::from(chunks.peek().is_none()));
        out.extend(size.to_le_bytes());
        out.extend((!size).to_le_bytes());
        out.extend(chunk);
    }
    out.extend(crc(data).to_le_bytes());
    out.extend(length(data.len()));
    out
}

/// A `.zip`, which a wheel is.
pub(super) fn zip(files: &[File<'_>]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (path, content) in files {
        let mut facts = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        facts.extend(crc(content.as_bytes()).to_le_bytes());
        facts.extend(length(content.len()));
        facts.extend(length(content.len()));
        facts.extend(u16::try_from(path.len()).expect("a short path").to_le_bytes());
        facts.extend([0, 0]);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&facts);
        directory.extend([0; 10]);
        directory.extend(length(out.len()));
        directory.extend(path.as_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&facts);
        out.extend(path.as_bytes());
        out.extend(content.as_bytes());
    }
    let count = u16::try_from(files.len()).expect("few files").to_le_bytes();
    let (start, size) = (length(out.len()), length(directory.len()));
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([count, count].concat());
    out.extend([size, start].concat());
    out.extend([0, 0]);
    out
}

fn length(size: usize) -> [u8; 4] {
    u32::try_from(size).expect("archives of tests are small").to_le_bytes()
}

fn crc(data: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !data.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
