// Two transfer engines, an owner and a requester, of either kind, and the pages between them.
// One thread; every wait has a deadline.
#ifndef PANDO_TESTS_TRANSFER_ENGINE_PAIR_H_
#define PANDO_TESTS_TRANSFER_ENGINE_PAIR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

#include "transfer/engine.h"

namespace pando {

// What one engine has said.
struct Heard {
  std::map<uint64_t, std::map<uint32_t, PageOutcome>> pages;  // of each pull, by position
  std::map<uint64_t, PullEnded> ended;
  std::vector<GrantEnded> grants;

  void Add(const std::vector<TransferEvent>& events);  // fails the test on a second outcome
  uint32_t Count(uint64_t pull, PageOutcome outcome) const;
};

class EnginePair {
 public:
  virtual ~EnginePair() = default;

  std::unique_ptr<TransferEngine> owner, requester;
  Heard owner_heard, requester_heard;
  std::string owner_address;

  // Where pages must lie that both engines may touch; as long as the pair.
  virtual std::pmr::memory_resource* memory() { return std::pmr::new_delete_resource(); }
  virtual Nanos Now() const = 0;
  // Lets things happen until `done`; false: they did not come to it.
  virtual bool Await(const std::function<bool()>& done) = 0;

 protected:
  void Take();  // events of both
};

std::unique_ptr<EnginePair> MakeLoopbackPair(const TransferLimits& limits);
std::unique_ptr<EnginePair> MakeUcxPair(const TransferLimits& limits);
std::unique_ptr<EnginePair> MakeUcxRendezvousPair(const TransferLimits& limits);
std::unique_ptr<EnginePair> MakeProcessPair(const TransferLimits& limits);

}  // namespace pando

#endif  // PANDO_TESTS_TRANSFER_ENGINE_PAIR_H_
