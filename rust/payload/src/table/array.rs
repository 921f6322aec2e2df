//! A finished column, in the memory layout of Arrow.

/// A column, or the items of a list, or a field of a structure.
#[derive(Debug)]
pub struct Array {
    /// The number of values, including nulls.
    pub len: usize,
    /// The number of nulls.
    pub null_count: usize,
    /// One bit for each value, the lowest of a byte first: 0 for a null. `None` if there is no null.
    pub validity: Option<Vec<u8>>,
    /// The values; those in place of nulls have no meaning.
    pub values: Values,
}

/// The values of an [`Array`].
#[derive(Debug)]
pub enum Values {
    /// Booleans, one bit each, the lowest of a byte first.
    Bits(Vec<u8>),
    /// Integers, or times in microseconds since 1970.
    I64(Vec<i64>),
    /// Integers without a sign.
    U64(Vec<u64>),
    /// Floating-point numbers.
    F64(Vec<f64>),
    /// Texts or bytes: where each starts in `data`, and where the last one ends.
    Bytes {
        /// One more than there are values.
        offsets: Vec<i32>,
        /// All texts or bytes, one after another.
        data: Vec<u8>,
    },
    /// Lists: where each starts among the items of all, and where the last one ends.
    List {
        /// One more than there are values.
        offsets: Vec<i32>,
        /// All items, one after another.
        items: Box<Array>,
    },
    /// Structures: each field as an array of the same length.
    Struct(Vec<Array>),
}
