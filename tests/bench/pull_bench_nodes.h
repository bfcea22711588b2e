// The same pull as an engine sees it: two pando-node processes, one that has the pages of a prompt
// and one that is asked for them.
#ifndef PANDO_TESTS_BENCH_PULL_BENCH_NODES_H_
#define PANDO_TESTS_BENCH_PULL_BENCH_NODES_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/client.h"
#include "tests/e2e/process/node_process.h"

namespace pando::bench {

class NodePair {
 public:
  // The nodes run on kOwnerCore and kRequesterCore, the caller on the latter.
  explicit NodePair(size_t page_bytes);

  // Stores the kPulled pages of prompt `seed`, which is new, at the one.
  void Prepare(unsigned seed);
  // Seconds from asking the other one for the prompt until all its pages may be loaded: look-up,
  // grant, pull, verification, commit and answers.
  double Pull(unsigned seed);

 private:
  const size_t page_bytes_;
  std::unique_ptr<e2e::NodeProcess> owner_, asker_;
  std::unique_ptr<client::Client> there_, here_;
  uint64_t requests_ = 0;
};

}  // namespace pando::bench

#endif  // PANDO_TESTS_BENCH_PULL_BENCH_NODES_H_
