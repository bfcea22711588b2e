// libFuzzer's changes to scripts: whole operations come, go and change places, so that most of what
// was found stays as it was.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "tests/fuzz/script.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace pando::fuzz {
namespace {

using Record = std::array<uint8_t, kOperationBytes>;

// A script as bytes: its start, and its operations.
struct Records {
  std::array<uint8_t, sizeof(Start)> start{};
  std::vector<Record> all;

  Records(const uint8_t* data, size_t size) {
    std::memcpy(start.data(), data, std::min(size, start.size()));
    for (size_t at = start.size(); at + kOperationBytes <= size; at += kOperationBytes) {
      std::memcpy(all.emplace_back().data(), data + at, kOperationBytes);
    }
  }
  size_t Write(uint8_t* data, size_t size_max) const {
    if (size_max < start.size()) return 0;
    std::memcpy(data, start.data(), start.size());
    size_t at = start.size();
    for (const Record& record : all) {
      if (at + kOperationBytes > size_max) break;
      std::memcpy(data + at, record.data(), kOperationBytes);
      at += kOperationBytes;
    }
    return at;
  }
};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }

  void Change(Records* records) {
    auto& all = records->all;
    if (all.empty()) return Insert(records);
    const auto at = static_cast<std::ptrdiff_t>(Below(all.size()));
    switch (Below(10)) {
      case 0:
        return Insert(records);
      case 1: {  // once more, somewhere
        const Record copy = all[static_cast<size_t>(at)];
        all.insert(all.begin() + static_cast<std::ptrdiff_t>(Below(all.size() + 1)), copy);
        return;
      }
      case 2: {
        const size_t count = std::min(1 + Below(4), all.size() - static_cast<size_t>(at));
        all.erase(all.begin() + at, all.begin() + at + static_cast<std::ptrdiff_t>(count));
        return;
      }
      case 3: {  // a part once more, at the end
        const size_t count = std::min(1 + Below(8), all.size() - static_cast<size_t>(at));
        const std::vector<Record> part(all.begin() + at,
                                       all.begin() + at + static_cast<std::ptrdiff_t>(count));
        all.insert(all.end(), part.begin(), part.end());
        return;
      }
      case 4:
        std::swap(all[static_cast<size_t>(at)], all[Below(all.size())]);
        return;
      case 5:
        LLVMFuzzerMutate(all[static_cast<size_t>(at)].data(), kOperationBytes, kOperationBytes);
        return;
      case 6:
        records->start[Below(records->start.size())] = static_cast<uint8_t>(Below(64));
        return;
      default:  // one number, mostly a small one
        all[static_cast<size_t>(at)][Below(kOperationBytes)] =
            static_cast<uint8_t>(Below(4) == 0 ? Below(256) : Below(20));
    }
  }

 private:
  void Insert(Records* records) {
    Record fresh{};
    for (uint8_t& number : fresh) {
      if (Below(2) == 0) number = static_cast<uint8_t>(Below(4) == 0 ? Below(256) : Below(20));
    }
    fresh[0] = static_cast<uint8_t>(Below(kKinds));
    auto& all = records->all;
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(Below(all.size() + 1)), fresh);
  }

  std::minstd_rand random_;
};

}  // namespace
}  // namespace pando::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned seed) {
  pando::fuzz::Records records(data, size);
  pando::fuzz::Mutator mutator(seed);
  for (size_t changes = 1 + mutator.Below(3); changes > 0; --changes) mutator.Change(&records);
  return records.Write(data, size_max);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1,
                                            const uint8_t* data2, size_t size2, uint8_t* out,
                                            size_t size_max, unsigned seed) {
  pando::fuzz::Records first(data1, size1);
  const pando::fuzz::Records second(data2, size2);
  pando::fuzz::Mutator mutator(seed);
  first.all.resize(mutator.Below(first.all.size() + 1));
  const auto from = static_cast<std::ptrdiff_t>(mutator.Below(second.all.size() + 1));
  first.all.insert(first.all.end(), second.all.begin() + from, second.all.end());
  return first.Write(out, size_max);
}
