#include "node/runtime/peer_names.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace pando::runtime {
namespace {

std::optional<std::vector<std::string>> LookUp(const std::string& host, std::string* why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    *why = ::gai_strerror(error);
    return std::nullopt;
  }
  std::vector<std::string> addresses;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      // A link-local address has its interface with it, which no other node understands.
      if (IsNumeric(text)) addresses.emplace_back(text);
    }
  }
  ::freeaddrinfo(list);
  return addresses;
}

}  // namespace

// Outlives the PeerNames while a look-up runs, which nothing can stop.
struct PeerNames::Shared {
  Shared(Options given, Found found_given, Failed failed_given)
      : options(std::move(given)), found(std::move(found_given)), failed(std::move(failed_given)) {}

  bool AllNumeric() const;
  void Run();
  void Tell(const std::vector<std::string>& addresses);
  std::vector<std::string> LookAll();
  // Of one name, or of none that is known now: the last ones.
  std::vector<std::string> Addresses(const std::string& peer, bool all);

  const Options options;
  std::mutex mutex;  // guards `ended`, and is held while the functions are called
  std::condition_variable changed;
  bool ended = false;
  const Found found;
  const Failed failed;

  // The thread of the look-ups only:
  std::map<std::string, std::vector<std::string>> known;  // by name
  std::set<std::string> failing;
  std::optional<std::vector<std::string>> told;
};

bool PeerNames::Shared::AllNumeric() const {
  const auto numeric = [](const std::string& peer) {
    HostAndPort address;
    return SplitHostAndPort(peer, &address) && IsNumeric(address.host);
  };
  return (options.dns.empty() || numeric(options.dns)) &&
         std::all_of(options.peers.begin(), options.peers.end(), numeric);
}

std::vector<std::string> PeerNames::Shared::Addresses(const std::string& peer, bool all) {
  HostAndPort address;
  SplitHostAndPort(peer, &address);
  if (IsNumeric(address.host)) return {peer};
  std::string why;
  auto looked_up = options.lookup(address.host, &why);
  std::vector<std::string>& last = known[peer];
  if (!looked_up || looked_up->empty()) {
    const std::lock_guard lock(mutex);
    if (failing.insert(peer).second && !ended) failed(peer, why.empty() ? "no address" : why);
    return last;
  }
  failing.erase(peer);
  std::vector<std::string> now;
  for (const std::string& host : *looked_up) now.push_back(JoinHostAndPort({host, address.port}));
  if (!all) {
    const bool stays = !last.empty() && std::find(now.begin(), now.end(), last[0]) != now.end();
    now = {stays ? last[0] : now[0]};
  }
  last = now;
  return last;
}

std::vector<std::string> PeerNames::Shared::LookAll() {
  std::set<std::string> addresses;
  const auto add = [&](const std::string& peer, bool all) {
    const std::vector<std::string> found_now = Addresses(peer, all);
    addresses.insert(found_now.begin(), found_now.end());
  };
  for (const std::string& peer : options.peers) add(peer, /*all=*/false);
  if (!options.dns.empty()) add(options.dns, /*all=*/true);
  return {addresses.begin(), addresses.end()};
}

void PeerNames::Shared::Tell(const std::vector<std::string>& addresses) {
  if (told == addresses) return;
  told = addresses;
  const std::lock_guard lock(mutex);
  if (!ended) found(addresses);
}

void PeerNames::Shared::Run() {
  for (;;) {
    Tell(LookAll());
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, options.every, [this] { return ended; })) return;
  }
}

PeerNames::PeerNames(Options options, Found found, Failed failed) {
  if (!options.lookup) options.lookup = LookUp;
  shared_ = std::make_shared<Shared>(std::move(options), std::move(found), std::move(failed));
  if (shared_->AllNumeric()) {
    shared_->Tell(shared_->LookAll());
  } else {
    std::thread([shared = shared_] { shared->Run(); }).detach();
  }
}

PeerNames::~PeerNames() {
  const std::lock_guard lock(shared_->mutex);
  shared_->ended = true;
  shared_->changed.notify_all();
}

}  // namespace pando::runtime
