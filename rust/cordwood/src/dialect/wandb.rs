//! Weights & Biases. Source: wandb `core/pkg/leveldb/record.go`,
//! `wandb/sdk/internal/datastore.py`.

use super::Dialect;
use crate::checksum::Checksum;

/// `:W&B`, the number 0xbee1, version 0.
const HEADER: &[u8] = b":W&B\xe1\xbe\x00";

impl Dialect {
    /// A run file of Weights & Biases (`.wandb`): a file header, types 1 to 4, and the CRC-32 of
    /// zip and PNG, not masked.
    pub const WANDB: Dialect = Dialect {
        name: "wandb",
        checksum: Checksum::Crc32,
        prefix: HEADER,
        signature: b":W&B",
        rank: Some(4),
        ..Dialect::LEVELDB
    };

    /// A run file of wandb-core before 0.17.6: as [`WANDB`](Self::WANDB), but the first block
    /// begins after the file header.
    pub const WANDB_OLD: Dialect = Dialect {
        name: "wandb_old",
        grid_offset: HEADER.len() as u64,
        rank: None,
        ..Dialect::WANDB
    };
}
