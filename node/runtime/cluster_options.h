// What a node is told of its cluster: the options of node/runtime/options.h that concern peers.
// Immutable after parsing.
#ifndef PANDO_NODE_RUNTIME_CLUSTER_OPTIONS_H_
#define PANDO_NODE_RUNTIME_CLUSTER_OPTIONS_H_

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace pando::runtime {

struct ClusterOptions {
  std::string peer_listen;         // numeric, with a port; empty: there is no cluster
  std::string data_listen;         // numeric, with a port; empty: no page is given or taken
  std::vector<std::string> peers;  // HOST:PORT, each named once
  std::string peers_dns;           // NAME:PORT, whose addresses are the peers; empty: `peers` are
};

// As it was written; ReadCluster makes ClusterOptions of it.
struct WrittenCluster {
  std::string peer_listen, data_listen, peers;
  bool no_sharing = false, insecure_peers = false;
};

void DeclareCluster(CLI::App* app, WrittenCluster* written);
// Empty, or the first thing that is wrong.
std::string ReadCluster(const WrittenCluster& written, ClusterOptions* out);
// Adds to the log's list of all options.
void DescribeCluster(const ClusterOptions& options,
                     std::vector<std::pair<std::string, std::string>>* fields);

struct HostAndPort {
  std::string host;  // without brackets; empty: none was said
  int port = 0;
};
// "HOST:PORT", "[V6]:PORT", ":PORT", "PORT". False: none of these.
bool SplitHostAndPort(const std::string& text, HostAndPort* out);
// "HOST:PORT", or "[V6]:PORT".
std::string JoinHostAndPort(const HostAndPort& address);
// It is an address, no name.
bool IsNumeric(const std::string& host);

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_CLUSTER_OPTIONS_H_
