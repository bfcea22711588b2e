#include "node/core/ledger.h"

#include <algorithm>
#include <utility>

#include "node/core/limits.h"
#include "radix/base/check.h"

namespace pando {
namespace {

void Add(const Account& entry, Account* account) {
  account->requests += entry.requests;
  account->prompt += entry.prompt;
  account->hit_engine += entry.hit_engine;
  account->hit_device += entry.hit_device;
  account->hit_host += entry.hit_host;
  account->hit_disk += entry.hit_disk;
  account->hit_peer += entry.hit_peer;
  account->computed += entry.computed;
  account->failed += entry.failed;
}

bool Balances(const Account& a) {
  return a.prompt ==
             a.hit_engine + a.hit_device + a.hit_host + a.hit_disk + a.hit_peer + a.computed &&
         a.failed <= a.computed;
}

// What can be true of what an engine says. Hits that there were not had to be computed, and those
// that a load should have brought have failed.
SettleRequest Possible(const OpenRequest& request, const SettleRequest& said) {
  const uint64_t prompt = request.prompt_tokens;
  SettleRequest counted;
  counted.request = said.request;
  counted.prefill_micros = said.prefill_micros;
  // More than at its acquire, if its own cache has got more while it waited for its turn.
  counted.engine = std::min(said.engine, prompt);
  // All are leading tokens, so together they cannot cover more than the longer one.
  const uint64_t covered = std::min(prompt, std::max(counted.engine, request.loaded));
  // No sum of what was said can overflow: each is cut to the prompt first.
  const uint64_t room = std::min(request.loaded, covered - counted.engine);
  counted.host = std::min(said.host, room);
  counted.peer = std::min(said.peer, room - counted.host);
  const uint64_t missed =
      std::min(said.host - counted.host, prompt) + std::min(said.peer - counted.peer, prompt);
  counted.failed = std::min(std::min(said.failed, prompt) + missed,
                            prompt - counted.engine - counted.host - counted.peer);
  return counted;
}

bool Same(const SettleRequest& a, const SettleRequest& b) {
  return a.engine == b.engine && a.device == b.device && a.host == b.host && a.disk == b.disk &&
         a.peer == b.peer && a.failed == b.failed;
}

}  // namespace

std::optional<Problem> Ledger::TakeBytes(Book* book, uint64_t more) {
  constexpr const char* kWhat = "bytes of prompts in open requests";
  constexpr const char* kDo = "settle requests that are done";
  const uint64_t own = book->bytes + more, all = open_bytes_ + more;
  if (own > limits::kOpenBytesPerReplica) {
    return OverLimit(kWhat, own, limits::kOpenBytesPerReplica, "in one replica", kDo);
  }
  if (all > limits::kOpenBytes) {
    return OverLimit(kWhat, all, limits::kOpenBytes, "in all replicas of a node", kDo);
  }
  book->bytes = own;
  open_bytes_ = all;
  return std::nullopt;
}

std::optional<Problem> Ledger::Open(ReplicaNumber replica, RequestId request,
                                    std::unique_ptr<OpenRequest> opened) {
  Book& book = books_[replica];
  if (request == RequestId()) {
    return Invalid("request 0 found: name requests from 1 on, 0 means none");
  }
  if (book.requests.contains(request)) {
    return Invalid(Text("request ", request, " is open: settle it first, or choose another id"));
  }
  if (book.requests.size() >= limits::kRequestsPerReplica) {
    return OverLimit("open requests", book.requests.size() + 1, limits::kRequestsPerReplica,
                     "in one replica", "settle those that are done");
  }
  if (auto problem = TakeBytes(&book, opened->prompt.bytes())) return problem;
  book.requests.emplace(request, std::move(opened));
  ++open_;
  return std::nullopt;
}

OpenRequest* Ledger::Find(ReplicaNumber replica, RequestId request) {
  auto book = books_.find(replica);
  if (book == books_.end()) return nullptr;
  auto it = book->second.requests.find(request);
  return it == book->second.requests.end() ? nullptr : it->second.get();
}

std::optional<Problem> Ledger::Append(ReplicaNumber replica, OpenRequest* request,
                                      std::span<const uint32_t> tokens) {
  if (tokens.empty() || request->growth_stopped) return std::nullopt;
  Book& book = books_[replica];
  const uint64_t prompt = request->prompt.tokens() + tokens.size();
  if (prompt > limits::kTokensPerPrompt) {
    return OverLimit("tokens", prompt, limits::kTokensPerPrompt, "in one prompt",
                     "go on without storing");
  }
  if (auto problem = TakeBytes(&book, tokens.size_bytes())) return problem;
  request->prompt.Append(tokens);
  return std::nullopt;
}

void Ledger::Fetched(OpenRequest* request, uint64_t begin_token, uint64_t end_token) {
  if (begin_token >= end_token) return;
  const bool first = request->fetched_end == 0;
  request->fetched_begin = first ? begin_token : std::min(request->fetched_begin, begin_token);
  request->fetched_end = std::max(request->fetched_end, end_token);
}

void Ledger::LoadEnded(const RequestRef& ref, uint64_t loaded, uint64_t failed) {
  OpenRequest* request = Find(ref.replica, ref.request);
  if (request == nullptr || request->serial != ref.serial) return;  // settled meanwhile
  request->loaded = loaded;
  request->failed = failed;
}

void Ledger::Count(const OpenRequest& request, const SettleRequest& settle) {
  if (request.again) return;
  Account entry;
  entry.requests = 1;
  entry.prompt = request.prompt_tokens;
  entry.hit_engine = settle.engine;
  const uint64_t loaded = settle.host + settle.peer;
  const uint64_t begin = std::max(settle.engine, request.fetched_begin);
  const uint64_t end = std::min(settle.engine + loaded, request.fetched_end);
  entry.hit_peer = end > begin ? end - begin : 0;
  entry.hit_host = loaded - entry.hit_peer;
  entry.computed = entry.prompt - settle.engine - loaded;
  entry.failed = std::min(std::max(settle.failed, request.failed), entry.computed);
  PANDO_CHECK(Balances(entry)) << "prompt " << entry.prompt << " computed " << entry.computed;
  if (by_space_.size() <= request.space.value()) by_space_.resize(request.space.value() + 1);
  Add(entry, &by_space_[request.space.value()]);
  Add(entry, &total_);
}

std::optional<Problem> Ledger::Settle(ReplicaNumber replica, const SettleRequest& settle,
                                      std::string* corrected) {
  OpenRequest* request = Find(replica, settle.request);
  if (request == nullptr) {
    return Unknown(
        Text("request ", settle.request, " is not open: settle each acquired request once"));
  }
  const SettleRequest counted = Possible(*request, settle);
  Count(*request, counted);
  if (!Same(counted, settle)) {
    *corrected = Text("counted were ", counted.engine, " tokens of the engine's own, ",
                      counted.host + counted.peer, " from host or peer of ", request->loaded,
                      " that its lease brought to all shards, and ", counted.failed,
                      " failed: settle with what was really used, each token once");
  }
  Book& book = books_[replica];
  book.bytes -= request->prompt.bytes();
  open_bytes_ -= request->prompt.bytes();
  book.requests.erase(settle.request);
  --open_;
  context_->Reached(CoreStep::kSettleCounted);
  return std::nullopt;
}

void Ledger::SettleAll(ReplicaNumber replica) {
  auto book = books_.find(replica);
  if (book == books_.end()) return;
  // Sums only: the order of the table does not show.
  for (const auto& [id, request] : book->second.requests) {
    SettleRequest settle;
    settle.request = id;
    settle.host = std::min(request->loaded, request->prompt_tokens);
    Count(*request, settle);
    --open_;
    context_->Reached(CoreStep::kSettleByNode);
  }
  open_bytes_ -= book->second.bytes;
  books_.erase(book);
}

Account Ledger::account(SpaceId space) const {
  return space.value() < by_space_.size() ? by_space_[space.value()] : Account{};
}

std::string Ledger::SelfCheck() const {
  Account sum;
  for (size_t space = 0; space < by_space_.size(); ++space) {
    if (!Balances(by_space_[space])) return Text("the account of space ", space, " is unbalanced");
    Add(by_space_[space], &sum);
  }
  if (!Balances(total_)) return "the account is unbalanced";
  if (sum.prompt != total_.prompt || sum.computed != total_.computed ||
      sum.requests != total_.requests || sum.failed != total_.failed) {
    return "the accounts of the spaces do not sum to the total";
  }
  uint64_t open = 0, open_bytes = 0;
  for (const auto& [replica, book] : books_) {
    uint64_t bytes = 0;
    for (const auto& [id, request] : book.requests) bytes += request->prompt.bytes();
    if (bytes != book.bytes) {
      return Text("replica ", replica, " counts ", book.bytes, " open bytes, has ", bytes);
    }
    open += book.requests.size();
    open_bytes += bytes;
  }
  if (open_bytes != open_bytes_) {
    return Text(open_bytes_, " open bytes counted, ", open_bytes, " found");
  }
  if (open != open_) return Text(open_, " open requests counted, ", open, " found");
  return "";
}

}  // namespace pando
