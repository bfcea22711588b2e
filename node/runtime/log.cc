#include "node/runtime/log.h"

#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string>
#include <string_view>

#include "node/runtime/log_format.h"

namespace pando::runtime {
namespace {

constexpr size_t kLinesWaitingMax = 8192;
constexpr int kPatienceMillis = 200;

spdlog::level::level_enum LevelOf(LogLine::Level level) {
  switch (level) {
    case LogLine::Level::kDebug:
      return spdlog::level::debug;
    case LogLine::Level::kInfo:
      return spdlog::level::info;
    case LogLine::Level::kWarning:
      return spdlog::level::warn;
    case LogLine::Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::unique_ptr<spdlog::formatter> MakeFormatter() {
  return std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                                                     spdlog::pattern_time_type::utc);
}

// False if stderr took nothing for `patience_ms`: what is left of `text` is dropped.
bool WriteBounded(std::string_view text, int patience_ms) {
  while (!text.empty()) {
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, patience_ms) <= 0) return false;
    // A pipe that is writable takes this much without blocking.
    const ssize_t wrote =
        ::write(STDERR_FILENO, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (wrote < 0) return false;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

// Stderr, without waiting for a reader who does not read: what it does not take soon is dropped.
class BoundedStderr final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit BoundedStderr(spdlog::details::thread_pool* queue) : queue_(queue) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const uint64_t dropped = dropped_ + queue_->overrun_counter();
    if (dropped > said_) {
      const std::string line = "log.dropped lines=" + std::to_string(dropped - said_);
      const spdlog::details::log_msg notice(message.time, {}, message.logger_name,
                                            spdlog::level::warn, line);
      if (Write(notice)) said_ = dropped;
    }
    if (!Write(message)) ++dropped_;
  }
  bool Write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    // A reader who has let one line wait gets no second chance until he reads again.
    stuck_ = !WriteBounded({text.data(), text.size()}, stuck_ ? 0 : kPatienceMillis);
    return !stuck_;
  }
  void flush_() override {}

  spdlog::details::thread_pool* const queue_;  // whose thread calls this
  bool stuck_ = false;
  uint64_t dropped_ = 0;  // here, besides those that the queue had no room for
  uint64_t said_ = 0;     // of both
};

}  // namespace

struct Log::Impl {
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> logger;
};

Log::Log(LogLine::Level least) : least_(least), impl_(std::make_unique<Impl>()) {
  impl_->pool = std::make_shared<spdlog::details::thread_pool>(kLinesWaitingMax, 1);
  impl_->logger = std::make_shared<spdlog::async_logger>(
      "pando", std::make_shared<BoundedStderr>(impl_->pool.get()), impl_->pool,
      spdlog::async_overflow_policy::overrun_oldest);
  impl_->logger->set_formatter(MakeFormatter());
  impl_->logger->set_level(LevelOf(least));
}

Log::~Log() = default;  // the pool's thread ends when its queue is empty

void Log::Write(const LogLine& line) {
  if (line.level < least_) return;
  impl_->logger->log(LevelOf(line.level), FormatLine(line));
}

void Log::WriteLast(const LogLine& line) {
  const std::string text = FormatLine(line);
  spdlog::memory_buf_t formatted;
  MakeFormatter()->format({"pando", LevelOf(line.level), text}, formatted);
  WriteBounded({formatted.data(), formatted.size()}, kPatienceMillis);
}

}  // namespace pando::runtime
