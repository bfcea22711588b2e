#include "node/runtime/cluster.h"

#include <sys/epoll.h>

#include <type_traits>
#include <utility>

#include "node/control/random_number.h"
#include "node/core/cluster/limits.h"
#include "radix/base/check.h"
#include "transfer/process/process_engine.h"

namespace pando::runtime {

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Create(const ClusterOptions& options,
                                                         Owner owner) {
  std::unique_ptr<Cluster> cluster(new Cluster(std::move(owner)));
  cluster->options_ = options;
  Inbox* const inbox = &cluster->inbox_;
  if (!options.data_listen.empty()) {
    ProcessEngineOptions engine;
    engine.listen = options.data_listen;
    engine.notify = [inbox] { inbox->Wake(); };
    engine.died = [self = cluster.get()](const std::string& how, Nanos pause) {
      self->owner_.loop->Post([self, how, pause] { self->TransferDied(how, pause); });
    };
    engine.back = [self = cluster.get()] {
      self->owner_.loop->Post([self] { self->owner_.deliver(TransferRuns{true}); });
    };
    absl::StatusOr<std::unique_ptr<ProcessEngine>> made = ProcessEngine::Create(std::move(engine));
    if (!made.ok()) {
      const std::string why(made.status().message());
      const bool listening = why.find("listening on") != std::string::npos;
      return absl::FailedPreconditionError(
          "--data-listen " + options.data_listen + ": " + why +
          (listening ? "; say an address of this host and a free port"
                     : "; if it is UCX's, see UCX_TLS and UCX_NET_DEVICES in the environment"));
    }
    cluster->engine_ = *std::move(made);
  }
  const auto deliver = [inbox](Input input) { inbox->Put(std::move(input)); };
  absl::StatusOr<std::unique_ptr<control::PeerServer>> server =
      control::PeerServer::Start({.listen = options.peer_listen, .deliver = deliver});
  if (!server.ok()) return server.status();
  cluster->server_ = *std::move(server);
  cluster->client_ = std::make_unique<control::PeerClient>(deliver);
  return cluster;
}

Cluster::Cluster(Owner owner) : owner_(std::move(owner)) {
  watch_ = owner_.loop->Watch(inbox_.fd(), EPOLLIN, [this](uint32_t) { Drain(); });
  PANDO_CHECK(watch_ != local::EventLoop::WatchId::kNone) << "no room to watch peers";
}

Cluster::~Cluster() {
  names_.reset();
  client_.reset();
  server_.reset();
  engine_.reset();
  owner_.loop->Unwatch(watch_, inbox_.fd());
}

void Cluster::Begin(const std::string& node_name, BootId boot) {
  owner_.deliver(ClusterStarted{node_name, boot, data_address(), control::RandomNumber()});
  PeerNames::Options names;
  names.peers = options_.peers;
  names.dns = options_.peers_dns;
  // On another thread, maybe: through the loop, which refuses only when it ends.
  const auto found = [this](const std::vector<std::string>& addresses) {
    owner_.loop->Post([this, addresses] { SetPeers(addresses); });
  };
  const auto failed = [this](const std::string& name, const std::string& why) {
    owner_.loop->Post([this, name, why] {
      Log(LogLine::Level::kWarning, "peers.not_resolved", {{"name", name}, {"why", why}});
    });
  };
  names_ = std::make_unique<PeerNames>(std::move(names), found, failed);
}

void Cluster::SetPeers(const std::vector<std::string>& addresses) {
  PeersChanged changed;
  for (const std::string& address : addresses) {
    if (changed.peers.size() == limits::kPeers) {
      Log(LogLine::Level::kWarning, "peers.too_many",
          {{"found", std::to_string(addresses.size())}, {"used", std::to_string(limits::kPeers)}});
      break;
    }
    const PeerId next(static_cast<uint32_t>(ids_.size()));
    changed.peers.push_back({ids_.try_emplace(address, next).first->second, address});
  }
  client_->SetPeers(changed.peers);
  owner_.deliver(std::move(changed));
}

absl::StatusOr<std::span<std::byte>> Cluster::AddExtent(const HostExtent& extent) {
  if (engine_ == nullptr) return std::span<std::byte>();
  absl::StatusOr<std::span<std::byte>> bytes = memory_.Add(extent);
  if (bytes.ok()) engine_->AddMemory(*bytes, extent.fd());
  return bytes;
}

std::string Cluster::data_address() const {
  return engine_ == nullptr ? "" : engine_->address();
}

void Cluster::TransferDied(const std::string& how, Nanos pause) {
  owner_.deliver(TransferRuns{false});
  Log(LogLine::Level::kWarning, "transfer.restarted",
      {{"how", how},
       {"in_ms", std::to_string(pause / 1'000'000)},
       {"why",
        "what the transfer process cannot digest ends it; pulls under way have failed, and "
        "the cache is as it was: see who reaches the data port"}});
}

// ---- What comes back

void Cluster::Drain() {
  for (Input& input : inbox_.Take()) Step(std::move(input));
  if (engine_ == nullptr) return;
  engine_->TakeEvents(&events_);
  for (TransferEvent& event : events_) owner_.deliver(TransferHappened{std::move(event)});
  events_.clear();
}

void Cluster::Step(Input input) {
  const auto* arrived = std::get_if<FeedArrived>(&input);
  const std::optional<uint64_t> stream =
      arrived == nullptr ? std::nullopt : std::optional(arrived->stream);
  owner_.deliver(std::move(input));
  if (stream) client_->FeedStepped(*stream);
}

WireCounters Cluster::wire_counters() const {
  return {server_->counters(), engine_ == nullptr ? TransferCounters{} : engine_->counters()};
}

// ---- What the core says

void Cluster::CarryOut(Output&& output) {
  std::visit(
      [this](auto&& one) {
        using T = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<T, SendAnswer> || std::is_same_v<T, CloseSession> ||
                      std::is_same_v<T, SessionForgotten> || std::is_same_v<T, LogLine>) {
          PANDO_CHECK(false) << "an output of sessions";
        } else {
          Do(std::forward<decltype(one)>(one));
        }
      },
      std::move(output));
}

void Cluster::Do(OfferPages&& offer) {
  if (engine_ == nullptr) return;
  Offer pages{offer.grant, {}};
  pages.pages.reserve(offer.pages.size());
  for (const PageId page : offer.pages) pages.pages.push_back({memory_.Of(page, offer.page_bytes)});
  const bool taken = engine_->Start(std::move(pages));
  PANDO_CHECK(taken) << "the core grants less than the engine offers at once";
}

void Cluster::Do(RevokeOffer&& revoke) {
  if (engine_ != nullptr) return engine_->Revoke(revoke.grant);
  inbox_.Put(TransferHappened{GrantEnded{revoke.grant, 0}});
}

void Cluster::Do(StartPull&& start) {
  if (engine_ == nullptr) {
    PullPages none{start.pull, {}};
    for (uint32_t i = 0; i < start.pages.size(); ++i) none.pages.push_back({i});
    inbox_.Put(TransferHappened{std::move(none)});
    inbox_.Put(TransferHappened{PullEnded{start.pull, PullStatus::kTransferLost}});
    return;
  }
  Pull pull{start.pull, std::move(start.address), start.grant, start.deadline, {}};
  pull.pages.reserve(start.pages.size());
  for (const StartPull::Page& page : start.pages) {
    pull.pages.push_back({page.index, page.checksum, memory_.Of(page.to, start.page_bytes)});
  }
  engine_->Start(std::move(pull));
}

void Cluster::Do(CancelPull&& cancel) {
  if (engine_ != nullptr) engine_->Cancel(cancel.pull);
}

void Cluster::Log(LogLine::Level level, const char* event,
                  std::vector<std::pair<std::string, std::string>> fields) {
  owner_.log(LogLine{level, event, std::move(fields)});
}

}  // namespace pando::runtime
