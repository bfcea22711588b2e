// The kinds of fault that a simulation injects, by name. Immutable.
#ifndef PANDO_TESTS_SIM_FAULTS_H_
#define PANDO_TESTS_SIM_FAULTS_H_

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pando::sim {

enum class Fault : uint8_t {
  // Of nodes.
  kCrash,   // and another life, with another boot id and an empty slab
  kDrain,   // says goodbye, ends, comes back
  kStall,   // does nothing for a while, then all at once
  kJump,    // its clock jumps forward
  kFreeze,  // its clock stands still for a while, then jumps
  // Of the network.
  kPartition,  // nothing passes between two nodes, or between one and all others, for a while
  kReset,      // all connections between two nodes end
  kSlow,       // messages between two nodes take long
  kLose,       // answers and pieces of feeds do not arrive
  kRepeat,     // messages arrive twice, the second time much later
  kLate,       // pages do not arrive, or very late
  kCorrupt,    // pages arrive with a bit changed
  kLie,        // answers and feeds say what is not so
  // Of replicas.
  kDeath,   // a process dies, and mostly its engine with it
  kSocket,  // a socket ends, its process lives
  kHang,    // a copy stops for longer than its claim stands
  kForget,  // a claim is never begun
  kBad,     // a page is called bad, or written wrong and called so; a store fails
  kHaste,   // a request whose deadline has passed when it arrives
  kMisuse,  // claims that are over, guessed, or another's
  // Of memory.
  kScarce,  // slabs of a few pages, whose extents come late or twice
};
inline constexpr size_t kFaults = 21;
using FaultSet = std::bitset<kFaults>;

std::string_view FaultName(Fault fault);
// "crash, drain, ..."
std::string FaultNames();
// Names joined by commas, or "all"; nullopt: one of them is none.
std::optional<FaultSet> ParseFaults(std::string_view list);
std::string Text(const FaultSet& faults);

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_FAULTS_H_
