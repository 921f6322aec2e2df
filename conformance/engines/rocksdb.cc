// Prints the records of a log as RocksDB's reader returns them: one a line, in hex.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "db/log_reader.h"
#include "file/sequence_file_reader.h"
#include "util/coding.h"
#include "util/crc32c.h"

using namespace rocksdb;

struct Reporter : log::Reader::Reporter {
  void Corruption(size_t bytes, const Status& status, uint64_t) override {
    fprintf(stderr, "%zu bytes: %s\n", bytes, status.ToString().c_str());
  }
};

// The number of the log: that in the name of its file, else that of the first valid fragment at the start of a block.
static uint64_t NumberOf(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (uint64_t number = strtoull(name.c_str(), nullptr, 10)) return number;
  std::ifstream file(path, std::ios::binary);
  std::string block(log::kBlockSize, 0);
  while (file.read(&block[0], block.size()) || file.gcount() > log::kRecyclableHeaderSize) {
    size_t end = log::kRecyclableHeaderSize + DecodeFixed16(&block[4]);
    bool is_numbered = block[6] >= log::kRecyclableFullType && block[6] <= log::kRecyclableLastType;
    if (is_numbered && end <= static_cast<size_t>(file.gcount()) &&
        crc32c::Value(&block[6], end - 6) == crc32c::Unmask(DecodeFixed32(&block[0]))) {
      return DecodeFixed32(&block[7]);
    }
  }
  return 0;
}

extern "C" int read_log(const char* path, int recovery_mode) {
  std::unique_ptr<SequentialFileReader> file;
  Status status = SequentialFileReader::Create(FileSystem::Default(), path, FileOptions(), &file, nullptr, nullptr);
  if (!status.ok()) {
    fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  Reporter reporter;
  log::Reader reader(nullptr, std::move(file), &reporter, true, NumberOf(path));
  Slice record;
  std::string scratch;
  while (reader.ReadRecord(&record, &scratch, static_cast<WALRecoveryMode>(recovery_mode))) {
    printf("%s\n", record.ToString(true).c_str());
    fflush(stdout);
  }
  return 0;
}
