// The node's part in its cluster: carries out what the core says to peers and to the transfer
// engine, and delivers what comes back.
//
//   core ── AnswerPeer, SendFeed, EndFeed ──────────────────► PeerServer ────┐
//        ── AskPeer, OpenFeed, CloseFeed ───────────────────► PeerClient ────┼─► Inbox ─► core
//        ── OfferPages, RevokeOffer, StartPull, CancelPull ─► ProcessEngine ─┘
//                   its process ends, is back: TransferRuns ─► core
//                                                PeerNames ─► PeersChanged ─► core
//
// It decides nothing. Pages are PageIds to the core and memory to the engine: this is where one
// becomes the other.
//
// Threads: owner thread only.
#ifndef PANDO_NODE_RUNTIME_CLUSTER_H_
#define PANDO_NODE_RUNTIME_CLUSTER_H_

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "node/control/peer_client.h"
#include "node/control/peer_server.h"
#include "node/core/node_core.h"
#include "node/local/event_loop.h"
#include "node/runtime/cluster_options.h"
#include "node/runtime/inbox.h"
#include "node/runtime/metrics_cluster.h"
#include "node/runtime/page_memory.h"
#include "node/runtime/peer_names.h"
#include "transfer/engine.h"
#include "transfer/memory/host_slab.h"

namespace pando {
class ProcessEngine;
}

namespace pando::runtime {

class Cluster {
 public:
  struct Owner {
    local::EventLoop* loop = nullptr;
    std::function<void(Input)> deliver;  // steps the core
    std::function<void(const LogLine&)> log;
  };

  // Listens. An error is the configuration's: a port that cannot be had.
  static absl::StatusOr<std::unique_ptr<Cluster>> Create(const ClusterOptions& options,
                                                         Owner owner);
  // Peers are told; memory is given back when the engine touches it no more.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // To be called once: from now on the core talks to peers. Delivers.
  void Begin(const std::string& node_name, BootId boot);
  // Before the core hears of it; where it is mapped, empty without sharing. Extents come in the
  // order of their ids, and outlive this.
  absl::StatusOr<std::span<std::byte>> AddExtent(const HostExtent& extent);
  // An output that is no session's. Delivers nothing from within.
  void CarryOut(Output&& output);

  const std::string& peer_address() const { return server_->address(); }
  std::string data_address() const;  // empty: no pages are given or taken
  WireCounters wire_counters() const;

 private:
  explicit Cluster(Owner owner);
  void Drain();
  void Step(Input input);
  void TransferDied(const std::string& how, Nanos pause);
  void SetPeers(const std::vector<std::string>& addresses);
  void Log(LogLine::Level level, const char* event,
           std::vector<std::pair<std::string, std::string>> fields);

  void Do(AnswerPeer&& answer) { server_->Take(std::move(answer)); }
  void Do(SendFeed&& send) { server_->Take(std::move(send)); }
  void Do(EndFeed&& end) { server_->Take(std::move(end)); }
  void Do(AskPeer&& ask) { client_->Take(std::move(ask)); }
  void Do(OpenFeed&& open) { client_->Take(open); }
  void Do(CloseFeed&& close) { client_->Take(close); }
  void Do(OfferPages&& offer);
  void Do(RevokeOffer&& revoke);
  void Do(StartPull&& start);
  void Do(CancelPull&& cancel);

  const Owner owner_;
  ClusterOptions options_;
  PageMemory memory_;  // outlives the engine
  Inbox inbox_;
  local::EventLoop::WatchId watch_ = local::EventLoop::WatchId::kNone;
  std::map<std::string, PeerId> ids_;  // of all addresses that ever were
  std::vector<TransferEvent> events_;
  std::unique_ptr<ProcessEngine> engine_;  // null: no pages
  std::unique_ptr<control::PeerServer> server_;
  std::unique_ptr<control::PeerClient> client_;
  std::unique_ptr<PeerNames> names_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_CLUSTER_H_
