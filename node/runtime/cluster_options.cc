#include "node/runtime/cluster_options.h"

#include <arpa/inet.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstring>
#include <sstream>

#include "node/core/cluster/limits.h"
#include "node/runtime/refusal.h"

namespace pando::runtime {
namespace {

constexpr size_t kHostBytesMax = 253;  // of a DNS name
constexpr std::string_view kDnsPrefix = "dns:";

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool IsUnspecified(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

bool IsHost(const std::string& host) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return IsNumeric(host) || (!host.empty() && host.size() <= kHostBytesMax &&
                             std::all_of(host.begin(), host.end(), allowed));
}

// Where this node listens for others.
std::string ReadListen(const std::string& key, const std::string& text, bool insecure,
                       HostAndPort* out) {
  if (!SplitHostAndPort(text, out) || (!out->host.empty() && !IsNumeric(out->host))) {
    return Refusal(key, text,
                   "ADDRESS:PORT with a numeric address, or PORT on 127.0.0.1, and a port of 0 "
                   "(any) to 65535");
  }
  if (out->host.empty()) out->host = "127.0.0.1";
  if (IsLoopback(out->host) || insecure) return "";
  return Refusal(key, text,
                 "an address of loopback, since what nodes say to each other is neither encrypted "
                 "nor authenticated yet (TLS comes later); on a network that you trust, say "
                 "--insecure-peers too");
}

std::string ReadData(const WrittenCluster& written, const HostAndPort& peer, ClusterOptions* out) {
  HostAndPort data{peer.host, 0};
  if (!written.data_listen.empty()) {
    std::string wrong =
        ReadListen("--data-listen", written.data_listen, written.insecure_peers, &data);
    if (!wrong.empty()) return wrong;
  }
  if (written.no_sharing) return "";
  if (IsUnspecified(data.host)) {
    return Refusal("--data-listen", written.data_listen,
                   "ADDRESS:PORT that peers can reach, since it is told to them as it is; say one "
                   "of this host's addresses");
  }
  out->data_listen = JoinHostAndPort(data);
  return "";
}

std::string ReadPeer(const std::string& text, std::string* out) {
  HostAndPort peer;
  if (!SplitHostAndPort(text, &peer) || !IsHost(peer.host) || peer.port == 0) {
    return Refusal("--peers", text,
                   "HOST:PORT,HOST:PORT,... or dns:NAME:PORT, with ports of 1 to 65535");
  }
  *out = JoinHostAndPort(peer);
  return "";
}

std::string ReadPeers(const std::string& text, ClusterOptions* out) {
  if (text.compare(0, kDnsPrefix.size(), kDnsPrefix) == 0) {
    return ReadPeer(text.substr(kDnsPrefix.size()), &out->peers_dns);
  }
  std::istringstream list(text);
  for (std::string one; std::getline(list, one, ',');) {
    std::string peer;
    if (std::string wrong = ReadPeer(one, &peer); !wrong.empty()) return wrong;
    if (std::find(out->peers.begin(), out->peers.end(), peer) != out->peers.end()) continue;
    out->peers.push_back(std::move(peer));
  }
  if (out->peers.size() <= limits::kPeers) return "";
  return Refusal("--peers", std::to_string(out->peers.size()) + " peers",
                 "at most " + std::to_string(limits::kPeers) + "; name fewer");
}

}  // namespace

bool IsNumeric(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

bool SplitHostAndPort(const std::string& text, HostAndPort* out) {
  const size_t colon = text.rfind(':');
  out->host = colon == std::string::npos ? "" : text.substr(0, colon);
  const bool brackets = !out->host.empty() && out->host.front() == '[';
  if (brackets) {
    if (out->host.back() != ']') return false;
    out->host = out->host.substr(1, out->host.size() - 2);
    if (!IsNumeric(out->host)) return false;
  }
  // Colons without brackets say nothing of where the port begins.
  if (!brackets && out->host.find(':') != std::string::npos) return false;
  const char* const start = text.data() + (colon == std::string::npos ? 0 : colon + 1);
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(start, end, out->port);
  return error == std::errc() && rest == end && out->port >= 0 && out->port <= 65535;
}

std::string JoinHostAndPort(const HostAndPort& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

void DeclareCluster(CLI::App* app, WrittenCluster* written) {
  app->add_option("--peer-listen", written->peer_listen,
                  "ADDRESS:PORT for other nodes [off: no cluster]; no address is 127.0.0.1");
  app->add_option("--data-listen", written->data_listen,
                  "ADDRESS:PORT that pages are pulled from [that of --peer-listen, any port]");
  app->add_option("--peers", written->peers,
                  "The other nodes: HOST:PORT,HOST:PORT,... or dns:NAME:PORT [none]");
  app->add_flag("--no-sharing", written->no_sharing,
                "Give no pages to peers and take none; counters are still told");
  app->add_flag("--insecure-peers", written->insecure_peers,
                "Let peers in from beyond loopback though nothing is encrypted");
}

std::string ReadCluster(const WrittenCluster& written, ClusterOptions* out) {
  if (written.peer_listen.empty()) {
    for (const auto& [key, value] :
         {std::pair("--data-listen", &written.data_listen), std::pair("--peers", &written.peers)}) {
      if (value->empty()) continue;
      return Refusal(
          key, *value,
          "only together with --peer-listen; say it, or leave " + std::string(key) + " out");
    }
    return "";
  }
  HostAndPort peer;
  std::string wrong =
      ReadListen("--peer-listen", written.peer_listen, written.insecure_peers, &peer);
  if (wrong.empty()) wrong = ReadData(written, peer, out);
  if (wrong.empty()) wrong = ReadPeers(written.peers, out);
  out->peer_listen = JoinHostAndPort(peer);
  return wrong;
}

void DescribeCluster(const ClusterOptions& options,
                     std::vector<std::pair<std::string, std::string>>* fields) {
  const auto or_off = [](const std::string& text) { return text.empty() ? "off" : text; };
  std::string peers = options.peers_dns.empty() ? "" : "dns:" + options.peers_dns;
  for (const std::string& peer : options.peers) peers += (peers.empty() ? "" : ",") + peer;
  fields->emplace_back("peer_listen", or_off(options.peer_listen));
  fields->emplace_back("data_listen", or_off(options.data_listen));
  fields->emplace_back("peers", peers.empty() ? "none" : peers);
}

}  // namespace pando::runtime
