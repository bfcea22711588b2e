// Names of peers into addresses, again and again, on a thread of its own: a look-up may take
// seconds, and the owner thread waits for nobody.
//
//   "a:7001,10.0.0.2:7001"  each name's first address, for as long as it stays one of the name's
//   dns "nodes:7001"        all addresses of the name
//
// A name that cannot be looked up keeps its last addresses. Where all are numeric there is no
// thread.
//
// Threads: made and ended by one thread; `found` is called on it for numeric ones, else on the
// thread of the look-ups, and never after the destructor.
#ifndef PANDO_NODE_RUNTIME_PEER_NAMES_H_
#define PANDO_NODE_RUNTIME_PEER_NAMES_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/runtime/cluster_options.h"

namespace pando::runtime {

class PeerNames {
 public:
  // A name's addresses, numeric; nullopt and `why`: it could not be looked up.
  using Lookup = std::function<std::optional<std::vector<std::string>>(const std::string& host,
                                                                       std::string* why)>;
  struct Options {
    std::vector<std::string> peers;  // as in ClusterOptions
    std::string dns;
    std::chrono::milliseconds every{30'000};
    Lookup lookup = nullptr;  // the system's
  };
  // ADDRESS:PORT each, sorted: at the start, and when they have changed.
  using Found = std::function<void(const std::vector<std::string>& addresses)>;
  // A name that could not be looked up; again only when it has been in between.
  using Failed = std::function<void(const std::string& name, const std::string& why)>;

  PeerNames(Options options, Found found, Failed failed);
  // Does not wait for a look-up that runs.
  ~PeerNames();
  PeerNames(const PeerNames&) = delete;
  PeerNames& operator=(const PeerNames&) = delete;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_PEER_NAMES_H_
