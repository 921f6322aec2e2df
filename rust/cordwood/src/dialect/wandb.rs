//! Weights & Biases. Source: wandb `core/pkg/leveldb/record.go`,
//! `wandb/sdk/internal/datastore.py`.

use super::leveldb::LEVELDB;
use super::{Dialect, Spec};
use crate::checksum::Checksum;

/// The file header: `:W&B`, the number 0xbee1 and version 0.
const HEADER: &[u8] = b":W&B\xe1\xbe\x00";

pub(super) static WANDB: Spec = Spec {
    name: "wandb",
    checksum: Checksum::Crc32,
    prefix: HEADER,
    signature: b":W&B",
    ..LEVELDB
};

static WANDB_OLD: Spec = Spec {
    name: "wandb_old",
    grid_offset: HEADER.len() as u64,
    ..WANDB
};

impl Dialect {
    /// A Weights & Biases run file (`.wandb`). It has a file header and fragments of types 1 to 4.
    /// The checksum is the CRC-32 of zip and PNG, and is not masked.
    pub const WANDB: Dialect = Dialect(&WANDB);

    /// A run file from wandb-core before 0.17.6. It is like [`WANDB`](Self::WANDB), but the first
    /// block starts after the file header.
    pub const WANDB_OLD: Dialect = Dialect(&WANDB_OLD);
}
