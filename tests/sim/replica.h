// One inference engine: a scheduler and workers (or one process of both), as an adversary would
// build it. It lives, copies, stops for longer than its claims last, loses sockets, dies in parts
// and comes back, and so does its node; always within the protocol: pages are touched only from an
// accepted Begin on, until it has said End or its process is gone.
//
//   request   acquire ─► await ─► begin, read, end (each shard) ─► reserve ─► ... ─► settle
//   process   attached ─┬─► socket ends ─► exit, or attach again with `replaces`
//                       └─► exit ─► socket ends
//
// One thread.
#ifndef PANDO_TESTS_SIM_REPLICA_H_
#define PANDO_TESTS_SIM_REPLICA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/decisions.h"
#include "tests/sim/faults.h"
#include "tests/sim/page_memory.h"
#include "tests/sim/sim_node.h"
#include "tests/sim/workload.h"

namespace pando::sim {

// Where a replica lives.
struct World {
  EventQueue* events;
  Checker* checker;
  Decisions* decisions;
  const Workload* workload;
  SimNode* node;
};

struct ReplicaOptions {
  std::string key;
  uint32_t shards = 1;
  bool single = true;     // one process of role both
  uint64_t geometry = 0;  // replicas of one geometry share pages
  bool intents = true;
  FaultSet faults;
  uint64_t one_in = 700;  // acts: its process dies, or loses its socket
  uint64_t seed = 0;
  uint32_t source = 1;  // of decisions
};

class Replica {
 public:
  Replica(const ReplicaOptions& options, const World& world);

  void Start();
  // So many requests and the like, up to so many units apart.
  void Act(uint64_t times, uint64_t pause);
  // No fault and no act from now on.
  void Calm() { calm_ = true; }
  // One sound request, and how many blocks of it were loaded.
  void Ask(const SimPrompt& prompt, std::function<void(uint32_t blocks)> done);
  // All processes die.
  void Stop();

  uint64_t geometry() const { return options_.geometry; }
  bool Serving() const;
  uint64_t faults() const { return faults_; }  // deaths and lost sockets
  uint64_t requests() const { return settled_; }
  uint64_t blocks_loaded() const { return blocks_loaded_; }
  uint64_t deaths() const { return deaths_; }
  uint64_t awaited_blocks() const { return awaited_blocks_; }

 private:
  struct Copy {  // that touches pages now
    std::shared_ptr<PageMemory> memory;
    PageMemory::Accessor accessor = 0;
  };
  struct Process {
    Role role = Role::kBoth;
    uint32_t shard = 0;
    SessionId session;   // its newest
    SessionId replaces;  // a session of this process whose socket has ended
    bool alive = false;
    bool attached = false;
    uint64_t life = 0;  // counts its starts
    std::map<uint64_t, Copy> copies;
  };
  // One copy of one claim by all shards.
  struct Job {
    ClaimId claim;
    bool store = false;
    SimPrompt prompt;
    uint32_t parts_left = 0;
    bool all_ok = true;
    Random random;
    std::function<void(bool ok)> done;
  };
  struct Request {
    Random random;
    RequestId id;
    SimPrompt prompt;
    uint64_t prompt_tokens = 0;
    uint32_t loaded_blocks = 0;
    std::function<void(uint32_t blocks)> done;  // it is settled
  };
  using JobRef = std::shared_ptr<Job>;
  using RequestRef = std::shared_ptr<Request>;

  // Processes.
  void StartProcess(size_t index);
  void Attach(size_t index);
  void LoseSocket(size_t index);
  void NodeLost();
  void AttachAgain(size_t index);
  void LeaveCopies(Process* process);
  void Die(size_t index);
  void Exited(size_t index, uint64_t life);
  Process& scheduler() { return processes_.front(); }
  size_t WorkerIndex(uint32_t shard) const { return options_.single ? 0 : 1 + shard; }

  // Requests.
  void ActOnce(Random random);
  void Schedule(RequestBody body, Nanos deadline, SimNode::OnAnswer on_answer);
  void NewRequest(const RequestRef& request);
  void Await(const RequestRef& request, const AcquireAnswer& hit);
  void LoadRequest(const RequestRef& request, ClaimId claim, uint32_t blocks);
  void StoreRequest(const RequestRef& request);
  void StorePlaced(const RequestRef& request, const Answer& answer);
  void StorePrompt(Random random);
  void SettleRequestNow(const RequestRef& request);
  void Misbehave(Random random);
  bool Chance(Random* random, Fault fault, uint64_t one_in) const {
    return !calm_ && options_.faults.test(static_cast<size_t>(fault)) && random->OneIn(one_in);
  }

  // Copies.
  void Run(const JobRef& job);
  void RunPart(const JobRef& job, uint32_t shard);
  void Touch(const JobRef& job, const BeginItem& item, uint32_t shard);
  void Finish(const JobRef& job, const BeginItem& item, uint32_t shard, uint64_t number,
              uint64_t life);
  EndItem Read(const JobRef& job, const BeginItem& item, uint32_t shard, const Copy& copy);
  EndItem Write(const JobRef& job, const BeginItem& item, uint32_t shard, const Copy& copy,
                bool all);
  void PartDone(const JobRef& job, bool ok);
  Stamp Expected(const Job& job, uint32_t block, uint32_t shard) const;
  Nanos ClaimDeadline(Random* random) const;

  ReplicaOptions options_;
  World world_;
  std::vector<Process> processes_;  // scheduler (or both), then the workers
  Random random_;                   // of its processes
  Random pauses_;
  Decider decider_;
  bool stopping_ = false, calm_ = false;
  uint64_t last_copy_ = 0, faults_ = 0;
  uint64_t last_request_ = 0, settled_ = 0, blocks_loaded_ = 0, deaths_ = 0;
  uint64_t awaited_blocks_ = 0;
  std::vector<ClaimId> recent_;  // claims, over or not, to abort or misuse
};

}  // namespace pando::sim

#endif  // PANDO_TESTS_SIM_REPLICA_H_
