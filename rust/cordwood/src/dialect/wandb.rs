//! Weights & Biases, and SwanLab. Source: wandb `core/pkg/leveldb/record.go`,
//! `wandb/sdk/internal/datastore.py`.

use super::Dialect;
use crate::checksum::Checksum;

/// `:W&B`, the number 0xbee1, version 0.
const HEADER: &[u8] = b":W&B\xe1\xbe\x00";

pub(super) const WANDB: Dialect = Dialect {
    name: "wandb",
    checksum: Checksum::Crc32,
    prefix: HEADER,
    ..super::leveldb::LEVELDB
};

pub(super) const WANDB_OLD: Dialect = Dialect {
    name: "wandb_old",
    grid_offset: HEADER.len() as u64,
    ..WANDB
};

/// `:SWL`, the number 0xe1d6, version 2.
pub(super) const SWANLAB: Dialect = Dialect {
    name: "swanlab",
    prefix: b":SWL\xd6\xe1\x02",
    ..WANDB
};
