#include "tests/sim/hours.h"

#include <iterator>

namespace pando::sim {
namespace {

template <size_t n>
uint64_t OneOf(const uint64_t (&choices)[n], Random* random) {
  return choices[random->Below(n)];
}

// About half of all, and at least one of nodes or of the network.
FaultSet DrawFaults(Random* random) {
  FaultSet faults(random->Next());
  faults.set(random->Below(static_cast<uint64_t>(Fault::kDeath)));
  return faults;
}

}  // namespace

SimulationOptions DrawHour(const HourOptions& hour) {
  Random random(Mix(hour.seed, hour.hour));
  SimulationOptions options;
  options.seed = random.Next();
  options.hour = HourPlan{.acts = random.Between(2400, 3400),
                          .bursts = random.Between(8, 32),
                          .faults = random.Between(30, 60)};
  const FaultSet faults = DrawFaults(&random);
  options.faults = hour.faults.value_or(faults);
  const auto nodes = static_cast<uint32_t>(random.Between(3, 5));
  options.nodes = hour.nodes == 0 ? nodes : hour.nodes;
  options.replicas = static_cast<uint32_t>(random.Between(2, 4));
  options.extents = static_cast<uint32_t>(random.Between(6, 24));
  if (options.faults.test(static_cast<size_t>(Fault::kScarce))) {
    options.extents = static_cast<uint32_t>(random.Between(4, 7));
    options.extent_pages_max = static_cast<uint32_t>(random.Between(4, 8));
  }
  options.collide = random.OneIn(16);
  options.intents = !random.OneIn(8);
  options.check_every = 2048;
  options.delay = OneOf({3, 30, 300}, &random);
  options.peer_delay = OneOf({1, 5, 50, 300}, &random);
  options.trace = random.OneIn(2) ? hour.trace : nullptr;
  return options;
}

}  // namespace pando::sim
