// Makes the host slab, extent by extent, on a thread of its own: zeroing memory takes longer than
// the owner thread may.
//
// It stops at what the machine has room for, and says so once. Threads: made and ended by one
// thread; the sink is called on the populator's own.
#ifndef PANDO_NODE_RUNTIME_SLAB_POPULATOR_H_
#define PANDO_NODE_RUNTIME_SLAB_POPULATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "radix/base/ids.h"
#include "transfer/memory/host_slab.h"

namespace pando::runtime {

// What stays available to everybody else on the machine.
inline constexpr Bytes kMemoryReserve{256ull << 20};

class SlabPopulator {
 public:
  struct Sink {
    std::function<bool(HostExtent)> extent;  // false: no more are wanted
    // All are there (OK), or why not; not called if no more were wanted.
    std::function<void(uint64_t made, const absl::Status& status)> done;
  };
  SlabPopulator(uint64_t extents, Sink sink);
  ~SlabPopulator();  // after the extent in the making
  SlabPopulator(const SlabPopulator&) = delete;
  SlabPopulator& operator=(const SlabPopulator&) = delete;

 private:
  void Populate(uint64_t extents);

  const Sink sink_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_SLAB_POPULATOR_H_
