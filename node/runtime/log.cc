#include "node/runtime/log.h"

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "node/runtime/log_format.h"

namespace pando::runtime {
namespace {

constexpr size_t kLinesWaitingMax = 8192;

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

}  // namespace

struct Log::Impl {
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> logger;
};

Log::Log(LogLine::Level least) : least_(least), impl_(std::make_unique<Impl>()) {
  impl_->pool = std::make_shared<spdlog::details::thread_pool>(kLinesWaitingMax, 1);
  impl_->logger = std::make_shared<spdlog::async_logger>(
      "pando", std::make_shared<spdlog::sinks::stderr_sink_mt>(), impl_->pool,
      spdlog::async_overflow_policy::overrun_oldest);
  impl_->logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc));
  impl_->logger->set_level(LevelOf(least));
}

Log::~Log() = default;  // the pool's thread ends when its queue is empty

void Log::Write(const LogLine& line) {
  if (line.level < least_) return;
  impl_->logger->log(LevelOf(line.level), FormatLine(line));
}

}  // namespace pando::runtime
