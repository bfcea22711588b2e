#include "client/ctl/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "client/client.h"

namespace pando::ctl {
namespace {

constexpr uint64_t kWidth = 40;
constexpr int64_t kInterval = 100'000'000;

}  // namespace

Progress::~Progress() {
  if (drawn_) (void)std::fputs("\r\x1b[K", stderr);
}

void Progress::Update(uint64_t done, const std::string& remark) {
  if (!shown_ || total_ == 0) return;
  const int64_t now = client::NowNanos();
  if (now < next_ns_) return;
  next_ns_ = now + kInterval;
  const std::string bar(kWidth * done / total_, '#');
  const std::string line =
      fmt::format("\r\x1b[K[{:.<{}}] {}/{}  {}", bar, kWidth, done, total_, remark);
  (void)std::fputs(line.c_str(), stderr);  // unbuffered; a progress bar nobody can see is no loss
  drawn_ = true;
}

bool StderrIsTerminal() {
  return isatty(STDERR_FILENO) == 1;
}

}  // namespace pando::ctl
