#include "node/runtime/slab_populator.h"

#include <utility>

namespace pando::runtime {

SlabPopulator::SlabPopulator(uint64_t extents, Sink sink)
    : sink_(std::move(sink)), thread_([this, extents] { Populate(extents); }) {}

SlabPopulator::~SlabPopulator() {
  stopping_ = true;
  thread_.join();
}

void SlabPopulator::Populate(uint64_t extents) {
  for (uint64_t made = 0; made < extents; ++made) {
    if (stopping_) return;
    absl::StatusOr<HostExtent> extent = HostExtent::Create(kMemoryReserve);
    if (!extent.ok()) {
      sink_.done(made, extent.status());
      return;
    }
    if (!sink_.extent(*std::move(extent))) return;
  }
  sink_.done(extents, absl::OkStatus());
}

}  // namespace pando::runtime
