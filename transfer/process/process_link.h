// ProcessEngine's link to its process: what is open, and what the process has said of it.
//
//   none ── Started ─► running ── Lost ─► ending (being reaped) ── Reaped ─► none
//
// What is open outlives the process: the next one is told of the offers, and Reaped ends the pulls.
// No thread and no time of its own; calls are made under one lock.
#ifndef PANDO_TRANSFER_PROCESS_PROCESS_LINK_H_
#define PANDO_TRANSFER_PROCESS_PROCESS_LINK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "transfer/engine.h"
#include "transfer/process/extent_map.h"
#include "transfer/process/message_codec.h"
#include "transfer/process/message_socket.h"

namespace pando::transfer {

class ProcessLink {
 public:
  explicit ProcessLink(v1::TransferOpen open);

  // ---- The engine's calls, as admitted
  void AddMemory(std::span<std::byte> extent, int fd);
  void Start(const Offer& offer);
  void Revoke(const GrantId& grant, Nanos now);
  void Start(Pull pull);
  void Cancel(uint64_t pull);

  // ---- The process's life
  void Started(UniqueFd socket, Nanos now);
  // Reads and sends. False: the process is lost; to be told by Lost.
  bool Move(Nanos now);
  void Lost();
  void Reaped();

  // Something that it owes is long overdue, and it says nothing: it does not move any more.
  bool Stuck(Nanos now) const;
  bool anything_open() const { return !pulls_.empty() || revoked_ > 0; }

  const MessageSocket* socket() const { return socket_ ? &*socket_ : nullptr; }
  // Of this process: whether it listens, or why not.
  const std::optional<absl::Status>& opened() const { return opened_; }
  const std::string& address() const { return address_; }

  std::vector<TransferEvent>& events() { return events_; }
  TransferCounters counters() const;

 private:
  struct OpenOffer {
    v1::TransferCommand command;
    std::optional<Nanos> revoked;
  };
  struct OpenPull {
    std::vector<PullPage> pages;
    std::vector<bool> told;
    uint64_t bytes = 0;  // arrived
    Nanos deadline = 0;
  };
  void Put(const v1::TransferCommand& command, int fd = -1);
  bool Read(const v1::TransferReport& report);
  bool Read(PullPages some);
  void EndByLoss(uint64_t id, const OpenPull& pull);

  v1::TransferOpen open_;
  enum class Life : uint8_t { kNone, kRunning, kEnding } life_ = Life::kNone;
  std::optional<MessageSocket> socket_;  // kRunning
  std::optional<absl::Status> opened_;
  std::string address_;
  Nanos heard_ = 0;

  ExtentMap extents_;
  std::vector<int> extent_fds_;  // the caller's
  absl::flat_hash_map<GrantId, OpenOffer> offers_;
  uint32_t revoked_ = 0;  // of offers_
  std::map<uint64_t, OpenPull> pulls_;
  std::vector<TransferEvent> events_;
  TransferCounters ours_;          // of pulls, exact, and restarts
  TransferCounters before_, now_;  // what ended processes counted, and what this one does
};

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_PROCESS_PROCESS_LINK_H_
