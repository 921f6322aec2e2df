// Prints the records of a log as LevelDB's own reader returns them: one a line, in hex. Damage that
// LevelDB reports is a line on standard error.
//
// Debian's libleveldb-dev has this reader in its static library, and does not install its header;
// so its interface is declared here.

#include <cstdint>
#include <cstdio>
#include <string>

#include "leveldb/env.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb::log {
class Reader {
 public:
  class Reporter {
   public:
    virtual ~Reporter();
    virtual void Corruption(size_t bytes, const Status& status) = 0;
  };
  Reader(SequentialFile* file, Reporter* reporter, bool checksum, uint64_t initial_offset);
  ~Reader();
  bool ReadRecord(Slice* record, std::string* scratch);

 private:
  alignas(16) char members_[512];  // More than it has.
};
}  // namespace leveldb::log

struct Printer : leveldb::log::Reader::Reporter {
  void Corruption(size_t, const leveldb::Status& status) override {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
  }
};

int main(int, char** arguments) {
  leveldb::SequentialFile* file;
  if (!leveldb::Env::Default()->NewSequentialFile(arguments[1], &file).ok()) return 1;
  Printer printer;
  leveldb::log::Reader reader(file, &printer, true, 0);
  leveldb::Slice record;
  std::string scratch;
  while (reader.ReadRecord(&record, &scratch)) {
    for (size_t at = 0; at < record.size(); ++at) std::printf("%02x", static_cast<uint8_t>(record[at]));
    std::printf("\n");
  }
  return 0;
}
