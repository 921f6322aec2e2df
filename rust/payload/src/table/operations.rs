//! The operations of a write batch as views.

use super::view::View;
use crate::{Operation, WriteBatch};

/// Calls `each` with the operations of a batch that has no fault, until it returns `false`. Returns
/// whether it never did.
pub(super) fn all_operations(batch: &WriteBatch<'_>, mut each: impl FnMut(View<'_>) -> bool) -> bool {
    let mut count = 0;
    batch.operations().map_while(Result::ok).all(|operation| {
        let mut cells = vec![("kind", View::Text(operation.as_str()))];
        if operation.is_counted() {
            cells.push(("sequence", View::UInt(batch.sequence().saturating_add(count))));
            count += 1;
        }
        add_parts(&mut cells, &operation, None);
        each(View::Cells(&cells))
    })
}

/// Appends the parts of an operation, and the name of its column family, if there is one.
pub(super) fn add_parts<'v>(
    cells: &mut Vec<(&'v str, View<'v>)>,
    operation: &Operation<'v>,
    family_name: Option<&'v [u8]>,
) {
    let parts = operation.parts();
    let found = [
        (
            "column_family",
            parts.column_family.map(|number| View::UInt(number.into())),
        ),
        ("column_family_name", family_name.map(View::Bytes)),
        ("key", parts.key.map(View::Bytes)),
        ("end_key", parts.end_key.map(View::Bytes)),
        ("value", parts.value.map(View::Bytes)),
        ("xid", parts.xid.map(View::Bytes)),
        ("timestamp", parts.timestamp.map(View::Bytes)),
        ("write_unix_time", parts.write_unix_time.map(View::UInt)),
    ];
    cells.extend(found.into_iter().filter_map(|(name, value)| Some((name, value?))));
}
