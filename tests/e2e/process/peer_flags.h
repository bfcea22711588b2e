// Flags for real nodes that are peers of each other over loopback TCP.
#ifndef PANDO_TESTS_E2E_PROCESS_PEER_FLAGS_H_
#define PANDO_TESTS_E2E_PROCESS_PEER_FLAGS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace pando::e2e {

// Ports of loopback that nobody had a moment ago, all different.
std::vector<std::string> FreePorts(size_t count);

// For the node `name` that listens at `port` and knows itself and who listens at `other`.
std::vector<std::string> PeerFlags(const std::string& name, const std::string& port,
                                   const std::string& other,
                                   const std::vector<std::string>& more = {});

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_PROCESS_PEER_FLAGS_H_
