// The engine's side of Pando: one Client is one session of one engine process with the node of its
// host.
//
//   scheduler   auto a = client.StartAcquire(...); ...; if (a.ready()) use a.get().blocks
//   worker      auto b = client.StartBegin({&claim, 1}, deadline); ...
//               Hold& hold = b.get().holds[0];
//               hold.Load(i, pieces) or hold.Store(i, pieces) for each page;
//               client.StartEnd(std::move(hold), deadline);
//
// What an engine may rely on:
//  1. No call blocks, except Wait, WaitUntil and WaitAttached, which end at their deadline.
//  2. Any failure is a miss: node absent, deadline passed, refused. Nothing throws, nothing aborts
//     the engine. A broken invariant in here ends the session, not the process.
//  3. Pages are touched only between an accepted Begin and its End; after the node is lost,
//     mappings stay valid until the last Hold is gone, and only then the client attaches again, by
//     itself.
//  4. What a late answer brings (a claim nobody waits for) is given back.
//  5. After fork, the child's calls fail with kUnavailable and touch neither socket nor memory.
//  6. No thread is started. Progress is made inside the calls: whatever an engine calls, Start...
//     and Wait alone as well, also finds a node that has come, or come back. A session that has
//     nothing to ask calls Poll now and then, as at each step of its engine: a replica gets no
//     claims while one of its sessions is not attached.
//
// Threads: a Client is used by one thread at a time; a Hold's Load and Store may run on any thread,
// also several at once on different pages.
#ifndef PANDO_CLIENT_CLIENT_H_
#define PANDO_CLIENT_CLIENT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pando {
class StepListener;  // radix/base/steps.h
}

namespace pando::client {

enum class Role : uint8_t { kScheduler, kWorker, kBoth };

struct Options {
  std::string socket;       // path of the node's socket, with or without "unix:"
  std::string replica_key;  // the engine's own name for the replica, equal in all its sessions
  Role role = Role::kBoth;
  uint32_t shard = 0;
  uint32_t world_size = 1;
  uint32_t block_tokens = 0;  // 0: this side does not know
  uint64_t page_bytes = 0;    // of one block and shard; 0: this side does not know
  std::vector<std::pair<std::string, std::string>> fields;  // all that shaped the KV
  uint64_t prefill_tokens_per_s = 0;  // what this engine computes, estimated; 0: unknown
  // The session() of a client of this process whose place this one takes: that client and all its
  // holds are gone. 0: none.
  uint64_t replaces = 0;
  int64_t attach_timeout_ns = 1'000'000'000;  // per try
  int64_t retry_min_ns = 50'000'000;          // between tries; doubles up to
  int64_t retry_max_ns = 2'000'000'000;
  StepListener* steps = nullptr;  // hears of client/steps.h's steps; outlives the client
};

enum class State : uint8_t {
  kDisconnected,  // no node; tries again by itself
  kAttaching,
  kAttached,
  kAbsent,    // attached, but a call timed out: counts as absent until it answers
  kRefused,   // the node said no (last_error says why); tries again, mostly at the slowest pace
  kDraining,  // lost the node; waits for holds to end before it attaches again
  kForked,    // this is a fork's child
  kClosed,
};

// As in client.proto; kLost: no answer will come (node gone, deadline passed).
enum class Code : uint8_t { kOk, kInvalid, kLimit, kUnknown, kExpired, kUnavailable, kLost };

struct Segment {
  std::string_view scope;  // empty: public
  uint64_t end = 0;        // it goes from where the one before ends to here, exclusive
};
struct Extra {
  uint32_t block = 0;
  std::string_view bytes;
};
// Borrowed only for the duration of the call that gets it.
struct Prompt {
  std::span<const uint32_t> tokens;
  std::span<const Segment> segments;  // ascending, the last one ends with the tokens; none: public
  std::span<const Extra> extras;      // ascending; what else shaped a block's KV, as image digests
};

// Names a claim, in all sessions of the replica: an engine's scheduler hands it to its workers,
// both numbers. In another life of the node the same id may be another claim's, so that a claim
// from before a restart is never sent: it is kUnknown.
struct Claim {
  uint64_t boot_id = 0;  // the node's life that gave it
  uint64_t id = 0;       // 0: none
  explicit operator bool() const { return id != 0; }
  friend bool operator==(const Claim&, const Claim&) = default;
};

struct AcquireResult {
  Code code = Code::kLost;
  std::string message;
  Claim claim;             // none: nothing to load
  uint32_t blocks = 0;     // leading blocks that may be loaded; 0 is a miss
  bool in_flight = false;  // somebody else is writing the next block
  uint64_t ticket = 0;     // in_flight, and it may be awaited; 0: no
};
struct AwaitResult {
  Code code = Code::kLost;  // kUnknown: the ticket is over
  std::string message;
  Claim claim;             // on all `blocks`, from the first; 0: the claim before stands as it did
  uint32_t blocks = 0;     // leading blocks that may be loaded by the claim that stands
  bool in_flight = false;  // more is still being made: the ticket may be awaited again
  uint32_t peer_from = 0, peer_to = 0;  // blocks that came from peers while this was awaited
};
struct ProbeResult {
  Code code = Code::kLost;
  std::string message;
  uint32_t blocks = 0;
  bool in_flight = false;  // somebody else is writing the next block
};
struct ReserveResult {
  Code code = Code::kLost;
  std::string message;
  Claim claim;                // none: nothing to store
  uint32_t from = 0, to = 0;  // blocks that got pages
  bool in_flight = false;     // somebody else is writing the next block
  bool full = false;
};
// What an acquire says that the replica will do about blocks that are not there.
enum class Intent : uint8_t {
  kLook,     // nothing
  kCompute,  // compute and store them, unless somebody else does: others may wait for them
};

// Whether a request is one of the account. A request that goes on after a preemption is acquired
// anew under another number: the account has it already.
enum class Account : uint8_t { kCounted, kAgain };

struct Used {  // tokens really used, by source
  uint64_t engine = 0, device = 0, host = 0, disk = 0, peer = 0;
  uint64_t failed = 0;
  uint64_t prefill_micros = 0;
};
struct SettleResult {
  Code code = Code::kLost;  // kOk: counted, and the request is closed
  std::string message;      // not empty: not all of `Used` could be true; what was counted instead
};

struct HoldState;
struct HoldAccess;
class Client;

// The right to touch the pages of one claim, of this session's shard, until Client::StartEnd or
// destruction (which gives it back as failed). Keeps its mappings alive. Movable.
class Hold {
 public:
  Hold();
  Hold(Hold&&) noexcept;
  Hold& operator=(Hold&&) noexcept;
  ~Hold();

  Claim claim() const;
  bool store() const;  // else a load
  uint32_t first_block() const;
  uint32_t pages() const;
  uint64_t page_bytes() const;
  // False once the session is lost or Stop was called: copies end at the next chunk and report
  // failure.
  bool live() const;
  void Stop();

  // Page i -> pieces, in order, sizes summing to page_bytes. True: copied, and the bytes are the
  // ones that were stored (checksum). False: the pieces hold rubbish; the page counts as bad at End
  // if its checksum was wrong.
  bool Load(uint32_t i, std::span<const std::span<std::byte>> pieces);
  // Pieces -> page i. False: not stored.
  bool Store(uint32_t i, std::span<const std::span<const std::byte>> pieces);

 private:
  friend struct HoldAccess;
  std::shared_ptr<HoldState> state_;
};

struct BeginResult {
  Code code = Code::kLost;
  std::string message;
  std::vector<Code> codes;  // one for each claim asked for
  std::vector<Hold> holds;  // one for each claim; only those with kOk may be used
};
struct EndResult {
  Code code = Code::kLost;  // kUnknown: a store that came too late, nothing was committed
  std::string message;
};

template <class Result>
struct CallSlot;

// An answer to come. Movable; dropping it means that nobody waits: what the answer brings is given
// back.
template <class Result>
class Call {
 public:
  Call();
  Call(Call&&) noexcept;
  Call& operator=(Call&&) noexcept;
  ~Call();

  // Also an empty Call is ready: no answer will come.
  bool ready() const;
  // The result; while not ready, a default one (kLost). Whoever has asked for a ready one owns what
  // it brought.
  Result& get();

 private:
  friend class Client;
  explicit Call(std::shared_ptr<CallSlot<Result>> slot);
  std::shared_ptr<CallSlot<Result>> slot_;
};

// What has happened to a client's calls, since it was made.
struct Counters {
  uint64_t calls = 0;            // started
  uint64_t calls_refused = 0;    // not sent: a limit, a wrong form, a forked or refused client
  uint64_t calls_lost = 0;       // no answer came in time, or there was no node to ask
  uint64_t calls_lost_full = 0;  // part of calls_lost: too much was queued already
  uint64_t given_back = 0;       // claims and holds that nobody waited for or kept
  uint64_t attaches = 0;
  uint64_t sessions_lost = 0;
};

// How bytes reach a node: a Unix socket, or (in tests) a node in the same process.
class Channel;

class Client {
 public:
  // Never blocks and never fails: without a node, everything is a miss until there is one.
  static std::unique_ptr<Client> Create(Options options);
  static std::unique_ptr<Client> Create(Options options, std::unique_ptr<Channel> channel);
  // Ends the session. Holds that are still alive keep their memory mapped.
  ~Client();

  State state() const;
  std::string last_error() const;
  uint64_t boot_id() const;  // of the node's current life; 0: none
  uint64_t session() const;  // the node's name for this session; 0: none
  const Counters& counters() const;

  // Sends what is queued, reads what has come. Never blocks.
  void Poll();
  // Polls until attached; false at the deadline.
  bool WaitAttached(int64_t deadline_ns);
  // The fd to poll for input, and whether to poll for output too; -1 while there is none.
  int fd() const;
  bool wants_write() const;

  // The first touch of each of the node's pages by this process costs a fault, several times what
  // copying it does. This enters up to `bytes` of what the node has shared so far, for one who has
  // nothing else to do: about 0.4 ms a MiB. False: nothing is left.
  bool Prefault(size_t bytes);

  // Each queues one message; the next Poll, Wait or Flush sends all that is queued in one frame.
  // `deadline_ns` is absolute CLOCK_MONOTONIC; past it the call is ready with kLost.
  // `claim_deadline_ns` is absolute too: until then the claim stands, at most 600 s; 0: 30 s.
  // `request` is the engine's own number, not 0, unique among the replica's open ones: from its
  // acquire to its settle, or to the end of this session. Reserve and Settle of any other are
  // kUnknown, and not sent.
  Call<AcquireResult> StartAcquire(uint64_t request, const Prompt& prompt,
                                   uint64_t engine_hit_tokens, int64_t claim_deadline_ns,
                                   int64_t deadline_ns, Intent intent = Intent::kLook,
                                   Account account = Account::kCounted);
  // Ready once whoever makes the missing blocks has finished, failed or gone, and at `until_ns` at
  // the latest, which lies before `deadline_ns`.
  Call<AwaitResult> StartAwait(uint64_t ticket, int64_t until_ns, int64_t deadline_ns);
  Call<ProbeResult> StartProbe(const Prompt& prompt, int64_t deadline_ns);
  // Pages for those of the blocks [from, to) that are not there. Neither a claim nor `full` nor
  // `in_flight`: all of them are. With request 0, `prompt` says all; otherwise `append_tokens` were
  // decoded since the last call.
  Call<ReserveResult> StartReserve(uint64_t request, const Prompt& prompt,
                                   std::span<const uint32_t> append_tokens, uint32_t from,
                                   uint32_t to, int64_t claim_deadline_ns, int64_t deadline_ns);
  // Claims whose pages do not all fit into one answer are begun by as many messages as they need.
  Call<BeginResult> StartBegin(std::span<const Claim> claims, int64_t deadline_ns);
  // Ends the hold: a load is released, a store commits the pages that were stored and gives up the
  // rest. No copy may be running (kInvalid: it is stopped and the hold given back when it has
  // left). Goes to the node however late, as do Abort and Settle: what is given back must arrive.
  Call<EndResult> StartEnd(Hold hold, int64_t deadline_ns);
  void Abort(std::span<const Claim> claims);
  Call<SettleResult> StartSettle(uint64_t request, const Used& used, int64_t deadline_ns);
  void Flush();

  // Polls until `call` is ready (at the latest at its own deadline).
  template <class Result>
  Result& Wait(Call<Result>& call);
  // The same for one who has other things to look after: false if it is not ready at `until_ns`.
  template <class Result>
  bool WaitUntil(Call<Result>& call, int64_t until_ns);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// CLOCK_MONOTONIC now: deadlines are this plus what one allows.
int64_t NowNanos();

}  // namespace pando::client

#endif  // PANDO_CLIENT_CLIENT_H_
