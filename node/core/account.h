// What was hit and what was computed, in tokens. Plain data; no thread.
#ifndef PANDO_NODE_CORE_ACCOUNT_H_
#define PANDO_NODE_CORE_ACCOUNT_H_

#include <cstdint>

namespace pando {

// Of all settled requests: prompt == the sum of the hits + computed, always.
struct Account {
  uint64_t requests = 0;
  uint64_t prompt = 0;
  uint64_t hit_engine = 0, hit_device = 0, hit_host = 0, hit_disk = 0, hit_peer = 0;
  uint64_t computed = 0;
  uint64_t failed = 0;  // part of computed: loaded, found bad or too late, computed after all
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_ACCOUNT_H_
