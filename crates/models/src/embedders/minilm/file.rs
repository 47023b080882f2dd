//! Reads the numbers out of an ONNX file: the few fields of its protocol buffers that hold tables, and nothing else.
//!
//! We know the network, so the graph in the file is of no use; only what was learned is taken.

use thiserror::Error;

/// A table of numbers as it lies in the file.
#[derive(Debug, Clone, Default)]
pub struct Table<'a> {
    pub name: &'a str,
    pub shape: Vec<usize>,
    kind: u64,
    bytes: &'a [u8],
}

/// Why a file is not what it should be.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    #[error("it ends in the middle, or is no ONNX file")]
    Broken,
    #[error("it has no table of {0}")]
    Missing(String),
    #[error("its table {0} has another shape or type")]
    Other(String),
}

/// Types of numbers, as ONNX counts them.
const F32: u64 = 1;
const I8: u64 = 3;

/// The fields that are read: of a model, its graph; of a graph, its tables; of a table, what it is.
const GRAPH: u64 = 7;
const TABLE: u64 = 5;
const SHAPE: u64 = 1;
const KIND: u64 = 2;
const NAME: u64 = 8;
const BYTES: u64 = 9;

/// Every table of a file.
pub fn tables(file: &[u8]) -> Result<Vec<Table<'_>>, Error> {
    let mut found = Vec::new();
    for (field, value) in Fields(file).all()? {
        let (GRAPH, Value::Bytes(graph)) = (field, value) else { continue };
        for (field, value) in Fields(graph).all()? {
            if let (TABLE, Value::Bytes(table)) = (field, value) {
                found.push(Table::read(table)?);
            }
        }
    }
    if found.is_empty() { Err(Error::Broken) } else { Ok(found) }
}

impl<'a> Table<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut table = Self::default();
        for (field, value) in Fields(bytes).all()? {
            match (field, value) {
                (SHAPE, Value::Number(side)) => table.shape.push(size(side)?),
                // Several sides may be packed into one field.
                (SHAPE, Value::Bytes(mut sides)) => {
                    while !sides.is_empty() {
                        table.shape.push(size(varint(&mut sides)?)?);
                    }
                }
                (KIND, Value::Number(kind)) => table.kind = kind,
                (NAME, Value::Bytes(name)) => {
                    table.name = std::str::from_utf8(name).map_err(|_| Error::Broken)?;
                }
                (BYTES, Value::Bytes(bytes)) => table.bytes = bytes,
                _ => {}
            }
        }
        Ok(table)
    }

    /// Its numbers, if it is of this shape.
    pub fn reals(&self, shape: &[usize]) -> Result<Vec<f32>, Error> {
        self.expect(F32, shape, 4)?;
        let number = |bytes: &[u8]| bytes.try_into().map(f32::from_le_bytes).unwrap_or_default();
        Ok(self.bytes.chunks_exact(4).map(number).collect())
    }

    /// Its numbers, if they are small whole ones of this shape.
    pub fn smalls(&self, shape: &[usize]) -> Result<Vec<i8>, Error> {
        self.expect(I8, shape, 1)?;
        Ok(self.bytes.iter().map(|byte| byte.cast_signed()).collect())
    }

    /// Whether it is a matrix of small whole numbers.
    pub fn is_matrix(&self) -> bool {
        self.kind == I8 && self.shape.len() == 2
    }

    fn expect(&self, kind: u64, shape: &[usize], each: usize) -> Result<(), Error> {
        let count: usize = shape.iter().product();
        let right = self.kind == kind && self.shape == shape && self.bytes.len() == count * each;
        if right { Ok(()) } else { Err(Error::Other(self.name.to_owned())) }
    }
}

fn size(number: u64) -> Result<usize, Error> {
    usize::try_from(number).map_err(|_| Error::Broken)
}

/// A message of protocol buffers.
struct Fields<'a>(&'a [u8]);

/// What a field holds, as far as it matters here.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Skipped,
}

impl<'a> Fields<'a> {
    fn all(mut self) -> Result<Vec<(u64, Value<'a>)>, Error> {
        let mut found = Vec::new();
        while !self.0.is_empty() {
            let key = varint(&mut self.0)?;
            let value = match key & 7 {
                0 => Value::Number(varint(&mut self.0)?),
                1 => self.skip(8)?,
                2 => {
                    let length = size(varint(&mut self.0)?)?;
                    Value::Bytes(self.take(length)?)
                }
                5 => self.skip(4)?,
                _ => return Err(Error::Broken),
            };
            found.push((key >> 3, value));
        }
        Ok(found)
    }

    fn skip(&mut self, count: usize) -> Result<Value<'a>, Error> {
        self.take(count).map(|_| Value::Skipped)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Error::Broken)?;
        self.0 = rest;
        Ok(taken)
    }
}

/// A number of seven bits a byte.
fn varint(bytes: &mut &[u8]) -> Result<u64, Error> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(Error::Broken)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Error::Broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length], bytes].concat()
    }

    fn small() -> Vec<u8> {
        let table = [field(8, b"w"), vec![1 << 3, 1, 1 << 3, 3, 2 << 3, 3], field(9, &[1, 0xff, 2])].concat();
        field(7, &field(5, &table))
    }

    #[test]
    fn a_table_is_found_with_its_shape() {
        let file = small();
        let found = tables(&file).unwrap();
        assert_eq!((found[0].name, found[0].smalls(&[1, 3])), ("w", Ok(vec![1, -1, 2])));
        assert_eq!(found[0].reals(&[1, 3]), Err(Error::Other("w".into())));
        assert_eq!(found[0].smalls(&[3, 1]), Err(Error::Other("w".into())));
    }

    #[test]
    fn a_file_cut_short_is_refused() {
        let file = small();
        for end in 0..file.len() {
            assert_eq!(tables(&file[..end]).unwrap_err(), Error::Broken, "{end}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = tables(&bytes);
            let _ = tables(&field(7, &bytes[..bytes.len().min(200)]));
        }
    }
}
