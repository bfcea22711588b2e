// What must hold when all engines have ended: every count of every node is at its base, a node's
// own recount finds nothing, the account balances, and a prompt that was stored is found again.
// One thread.
#ifndef PANDO_TESTS_E2E_KILL_REST_H_
#define PANDO_TESTS_E2E_KILL_REST_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <string>

#include "tests/e2e/kill/cluster.h"
#include "tests/e2e/kill/report.h"

namespace pando::e2e {

class Rest {
 public:
  Rest(Cluster* cluster, Report* report) : cluster_(*cluster), report_(*report) {}

  // Ends all engines, checks, and starts engines anew; the first time also learns what a node's
  // base of descriptors and threads is.
  void Run();
  // The last one: then ends all nodes by SIGTERM, and nothing is left of them.
  void End();

 private:
  struct Size {
    size_t fds = 0, threads = 0, transfer_fds = 0;
  };
  void Check();
  void CheckCounts(size_t host);
  void CheckSize(size_t host, const v1::Status& status);
  void CheckHits();
  std::string NotAtBase(size_t host);
  pid_t TransferOf(size_t host);  // -1: none, as while it is started again

  Cluster& cluster_;
  Report& report_;
  std::array<Size, kNodes> base_;
  uint64_t rests_ = 0;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_KILL_REST_H_
