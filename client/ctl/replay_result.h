// What a replay came to: plain counts, which add up as they are defined here.
//
//   prompt = hit_engine + hit_device + hit_host + hit_peer + computed          tokens, always
//   loaded = verified + wrong                                                  pages
//
// A block counts as a hit only if the pages of all its shards, and of all blocks before it, were
// loaded and compared byte by byte with what they must hold. Plain data; no thread.
#ifndef PANDO_CLIENT_CTL_REPLAY_RESULT_H_
#define PANDO_CLIENT_CTL_REPLAY_RESULT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace pando::ctl {

struct TokenAccount {
  uint64_t prompt = 0;
  uint64_t hit_engine = 0, hit_device = 0, hit_host = 0, hit_peer = 0;
  uint64_t computed = 0;

  uint64_t hits() const { return hit_engine + hit_device + hit_host + hit_peer; }
  bool balances() const { return prompt == hits() + computed; }
  TokenAccount& operator+=(const TokenAccount& other);
};

struct PageTotals {
  uint64_t loaded = 0;    // copied out, checksum right
  uint64_t verified = 0;  // of these: exactly the bytes that the page must hold
  uint64_t wrong = 0;     // of these: not so. Must never happen
  uint64_t bad = 0;       // refused by their checksum; they are reported and computed again
  uint64_t stored = 0;    // committed
  PageTotals& operator+=(const PageTotals& other);
};

// Pages that nodes pulled from peers, and what they would not pull.
struct PullTotals {
  uint64_t pages = 0, bytes = 0;  // that arrived
  uint64_t failed = 0;            // pages that did not, or not as promised
  uint64_t declined = 0;          // fetches that would have been slower than computing
  double seconds = 0;             // of all pulls, each by itself
  PullTotals& operator+=(const PullTotals& other);
};

// What a node itself has counted during the replay.
struct NodeCounts {
  uint64_t boot_id = 0;
  std::string name;
  uint64_t hit_peer = 0;  // tokens, of the replay's space
  uint64_t pulls = 0;
  PullTotals pull;
};

// Requests that found somebody else making what they missed.
struct WaitTotals {
  uint64_t tickets = 0;  // requests that got one and awaited it
  uint64_t more = 0;     // of these: more blocks came than had been there
  uint64_t late = 0;     // of these: at the deadline more was still being made
  WaitTotals& operator+=(const WaitTotals& other);
};

// What one request came to.
struct Outcome {
  TokenAccount tokens;
  uint64_t failed_tokens = 0;  // part of computed: offered by the node, not loaded or not verified
  PageTotals pages;
  bool reached = true;  // false: some call got no answer from the node
  bool full = false;    // no room to store it
  std::string refusal;  // why the node turned a call down, if it did
  WaitTotals waits;
  int64_t acquire_ns = 0;  // the look-up, there and back
  int64_t await_ns = 0;    // for what another makes; 0: not awaited
  int64_t load_ns = 0;     // begin, copies, end; 0: nothing was loaded
};

struct Percentiles {
  double p50 = 0, p99 = 0;
};
struct Latencies {
  std::vector<int64_t> acquire_ns, await_ns, load_ns;
  std::vector<int64_t> pull_ns;  // the mean of a request's pulls, by the node's own clock
};
// Nearest rank, in microseconds; zero without values.
Percentiles PercentilesOf(std::vector<int64_t> nanos);

// What one node's replicas came to.
struct NodeTotals {
  std::string socket, name;
  uint64_t boot_id = 0;
  bool restarted = false;  // what it did at the end of its life before is not known
  std::string unwatched;   // why the node's own figures are not known; empty: they are
  uint64_t replicas = 0;
  uint64_t requests = 0;
  uint64_t unreached = 0;  // requests some of whose calls got no answer
  TokenAccount tokens;
  PullTotals pull;
};

struct ReplayResult {
  uint64_t requests = 0;
  bool interrupted = false;
  double seconds = 0;
  TokenAccount tokens;
  uint64_t failed_tokens = 0;
  uint64_t not_stored = 0;  // requests whose blocks found no room
  uint64_t unreached = 0;
  uint64_t refused = 0;  // requests some of whose calls the node turned down
  std::string first_refusal;
  PageTotals pages;
  WaitTotals waits;
  PullTotals pull;
  Latencies latency;
  uint64_t ceiling_tokens = 0;  // what an infinite cache, empty at first, would have hit
  uint64_t warm_tokens = 0;     // offered beyond that: some node had blocks from before the replay
  std::vector<NodeTotals> nodes;

  // `ceiling` is what an infinite cache, empty at first, would have hit of this request.
  void Add(size_t node, const Outcome& outcome, uint64_t ceiling);
  // What the node has counted, once all requests are played: of the hits of its replicas, some came
  // from peers.
  void AddCounts(size_t node, const NodeCounts& counts);
  double hit_rate() const;
  double ceiling_rate() const;
  // False if a node was warm: then more may be hit than the ceiling has.
  bool ceiling_applies() const { return warm_tokens == 0; }
  // Empty, or what is wrong with it: wrong bytes, or an account that does not balance.
  std::string Problem() const;
};

nlohmann::json ToJson(const ReplayResult& result);
// For people: several tables, with a last line that sums up.
std::string ToText(const ReplayResult& result);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_REPLAY_RESULT_H_
