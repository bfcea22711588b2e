#include "client/client.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "client/session.h"
#include "client/socket_channel.h"

namespace pando::client {

int64_t NowNanos() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// ---- Call

template <class Result>
Call<Result>::Call() = default;
template <class Result>
Call<Result>::Call(std::shared_ptr<CallSlot<Result>> slot) : slot_(std::move(slot)) {}
template <class Result>
Call<Result>::Call(Call&&) noexcept = default;
template <class Result>
Call<Result>& Call<Result>::operator=(Call&&) noexcept = default;
template <class Result>
Call<Result>::~Call() = default;

template <class Result>
bool Call<Result>::ready() const {
  return !slot_ || slot_->ready || NowNanos() >= slot_->deadline;
}

template <class Result>
Result& Call<Result>::get() {
  if (!slot_) slot_ = std::make_shared<CallSlot<Result>>(0, nullptr);
  if (slot_->ready) slot_->taken = true;
  return slot_->result;
}

// ---- Client

struct Client::Impl {
  Session session;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

std::unique_ptr<Client> Client::Create(Options options) {
  auto channel = std::make_unique<SocketChannel>(options.socket);
  return Create(std::move(options), std::move(channel));
}

std::unique_ptr<Client> Client::Create(Options options, std::unique_ptr<Channel> channel) {
  std::unique_ptr<Impl> impl(new Impl{Session(std::move(options), std::move(channel))});
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

State Client::state() const {
  return impl_->session.state();
}
std::string Client::last_error() const {
  return impl_->session.last_error();
}
uint64_t Client::boot_id() const {
  return impl_->session.boot_id();
}
uint64_t Client::session() const {
  return impl_->session.id();
}
const Counters& Client::counters() const {
  return impl_->session.counters();
}
int Client::fd() const {
  return impl_->session.fd();
}
bool Client::wants_write() const {
  return impl_->session.wants_write();
}

void Client::Poll() {
  impl_->session.Poll();
}
void Client::Flush() {
  impl_->session.Flush();
}

bool Client::Prefault(size_t bytes) {
  return impl_->session.Prefault(bytes);
}

bool Client::WaitAttached(int64_t deadline_ns) {
  while (true) {
    Poll();
    if (state() == State::kAttached) return true;
    if (state() == State::kForked || NowNanos() >= deadline_ns) return false;
    impl_->session.Sleep(deadline_ns);
  }
}

Call<AcquireResult> Client::StartAcquire(uint64_t request, const Prompt& prompt,
                                         uint64_t engine_hit_tokens, int64_t claim_deadline_ns,
                                         int64_t deadline_ns, Intent intent, Account account) {
  return Call(impl_->session.StartAcquire(request, prompt, engine_hit_tokens, claim_deadline_ns,
                                          deadline_ns, intent, account));
}

Call<AwaitResult> Client::StartAwait(uint64_t ticket, int64_t until_ns, int64_t deadline_ns) {
  return Call(impl_->session.StartAwait(ticket, until_ns, deadline_ns));
}

Call<ProbeResult> Client::StartProbe(const Prompt& prompt, int64_t deadline_ns) {
  return Call(impl_->session.StartProbe(prompt, deadline_ns));
}

Call<ReserveResult> Client::StartReserve(uint64_t request, const Prompt& prompt,
                                         std::span<const uint32_t> append_tokens, uint32_t from,
                                         uint32_t to, int64_t claim_deadline_ns,
                                         int64_t deadline_ns) {
  return Call(impl_->session.StartReserve(request, prompt, append_tokens, from, to,
                                          claim_deadline_ns, deadline_ns));
}

Call<BeginResult> Client::StartBegin(std::span<const Claim> claims, int64_t deadline_ns) {
  return Call(impl_->session.StartBegin(claims, deadline_ns));
}

Call<EndResult> Client::StartEnd(Hold hold, int64_t deadline_ns) {
  return Call(impl_->session.StartEnd(std::move(hold), deadline_ns));
}

Call<SettleResult> Client::StartSettle(uint64_t request, const Used& used, int64_t deadline_ns) {
  return Call(impl_->session.StartSettle(request, used, deadline_ns));
}

void Client::Abort(std::span<const Claim> claims) {
  impl_->session.Abort(claims);
}

template <class Result>
bool Client::WaitUntil(Call<Result>& call, int64_t until_ns) {
  Flush();
  // The call's time is over, but not that of others: what has come must be read all the same.
  if (call.ready() && call.slot_ && !call.slot_->ready) Poll();
  while (!call.ready()) {
    if (NowNanos() >= until_ns) return false;
    impl_->session.Sleep(std::min(until_ns, call.slot_->deadline));
    Poll();
  }
  return true;
}

template <class Result>
Result& Client::Wait(Call<Result>& call) {
  WaitUntil(call, INT64_MAX);
  return call.get();
}

template class Call<AcquireResult>;
template class Call<AwaitResult>;
template class Call<ProbeResult>;
template class Call<ReserveResult>;
template class Call<BeginResult>;
template class Call<EndResult>;
template class Call<SettleResult>;

template AcquireResult& Client::Wait(Call<AcquireResult>&);
template bool Client::WaitUntil(Call<AcquireResult>&, int64_t);
template AwaitResult& Client::Wait(Call<AwaitResult>&);
template bool Client::WaitUntil(Call<AwaitResult>&, int64_t);
template ProbeResult& Client::Wait(Call<ProbeResult>&);
template bool Client::WaitUntil(Call<ProbeResult>&, int64_t);
template ReserveResult& Client::Wait(Call<ReserveResult>&);
template bool Client::WaitUntil(Call<ReserveResult>&, int64_t);
template BeginResult& Client::Wait(Call<BeginResult>&);
template bool Client::WaitUntil(Call<BeginResult>&, int64_t);
template EndResult& Client::Wait(Call<EndResult>&);
template bool Client::WaitUntil(Call<EndResult>&, int64_t);
template SettleResult& Client::Wait(Call<SettleResult>&);
template bool Client::WaitUntil(Call<SettleResult>&, int64_t);

}  // namespace pando::client
