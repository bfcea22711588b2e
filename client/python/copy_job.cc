#include "client/python/copy_job.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <span>
#include <utility>

namespace pando::python {

using client::NowNanos;

namespace {

int64_t ThreadCpuNanos() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

CopyJob::CopyJob(client::Claim claim, std::shared_ptr<const KvLayout> layout, uint32_t first_block,
                 std::vector<uint32_t> blocks)
    : claim_(claim),
      layout_(std::move(layout)),
      first_block_(first_block),
      blocks_(std::move(blocks)),
      process_(::getpid()) {}

CopyResult CopyJob::Run(client::Client* client, int64_t deadline_ns, int64_t call_ns) {
  CopyResult result;
  if (stopped()) {
    result.stopped = true;
    result.message = "stopped before it began";
    return result;
  }
  const int64_t start = NowNanos();
  auto call = client->StartBegin({&claim_, 1}, std::min(deadline_ns, start + call_ns));
  client::BeginResult& begun = client->Wait(call);
  result.begin_ns = NowNanos() - start;
  result.message = begun.message;
  result.code = begun.code == client::Code::kOk ? begun.codes.at(0) : begun.code;
  if (result.code != client::Code::kOk) return result;
  {
    const std::lock_guard lock(mutex_);
    hold_ = std::move(begun.holds.at(0));
  }
  result.store = hold_.store();
  const uint64_t end = uint64_t{hold_.first_block()} + hold_.pages();
  if (first_block_ < hold_.first_block() || first_block_ + blocks_.size() > end ||
      hold_.page_bytes() != layout_->page_bytes()) {
    result.code = client::Code::kInvalid;
    result.message = "the claim has other blocks, or pages of another size, than wanted";
    return result;
  }
  if (!Enter()) {
    result.stopped = true;
    return result;
  }
  const int64_t copy_start = NowNanos(), cpu_start = ThreadCpuNanos();
  Copy(deadline_ns, &result);
  result.copy_ns = NowNanos() - copy_start;
  result.copy_cpu_ns = ThreadCpuNanos() - cpu_start;
  Leave();
  return result;
}

void CopyJob::Copy(int64_t deadline_ns, CopyResult* result) {
  std::vector<std::span<std::byte>> pieces;
  std::vector<std::span<const std::byte>> sources;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (NowNanos() >= deadline_ns || !hold_.live()) {
      result->stopped = true;
      return;
    }
    const auto page = static_cast<uint32_t>(first_block_ - hold_.first_block() + i);
    layout_->Pieces(blocks_[i], &pieces);
    bool good = false;
    if (result->store) {
      sources.assign(pieces.begin(), pieces.end());
      good = hold_.Store(page, sources);
    } else {
      good = hold_.Load(page, pieces);
    }
    if (good) {
      ++result->pages;
      result->bytes += layout_->page_bytes();
    } else if (!hold_.live()) {
      result->stopped = true;
      return;
    } else {
      ++result->bad;
      if (!result->store) return;  // what follows a block that is missing is of no use
    }
  }
}

client::EndResult CopyJob::Finish(client::Client* client, int64_t deadline_ns) {
  client::Hold hold;
  {
    const std::lock_guard lock(mutex_);
    hold = std::exchange(hold_, client::Hold());
  }
  if (hold.pages() == 0) {
    return {.code = client::Code::kUnknown, .message = "there is no hold to end"};
  }
  auto call = client->StartEnd(std::move(hold), deadline_ns);
  return client->Wait(call);
}

CopyResult CopyJob::Execute(client::Client* client, int64_t deadline_ns, int64_t call_ns) {
  CopyResult result = Run(client, deadline_ns, call_ns);
  if (hold_.pages() != 0) result.end_code = Finish(client, NowNanos() + call_ns).code;
  return result;
}

void CopyJob::Stop() {
  if (::getpid() != process_) return;
  std::unique_lock lock(mutex_);
  stop_ = true;
  hold_.Stop();
  left_.wait(lock, [this] { return !copying_; });
}

bool CopyJob::Enter() {
  const std::lock_guard lock(mutex_);
  copying_ = !stop_;
  return copying_;
}

void CopyJob::Leave() {
  const std::lock_guard lock(mutex_);
  copying_ = false;
  left_.notify_all();
}

bool CopyJob::stopped() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

}  // namespace pando::python
