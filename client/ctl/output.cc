#include "client/ctl/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "client/ctl/exit_code.h"
#include "client/ctl/printable.h"

namespace pando::ctl {

void Say(std::string_view text) {
  // A failure stays noted in the stream, for FinishOutput.
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
}

void Complain(std::string_view message) {
  const std::string line = "pandoctl: " + PrintableLines(message) + "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

int FinishOutput(int code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const std::string why = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  if (flushed && std::ferror(stdout) == 0) return code;
  Complain("cannot write all of the output" + why);
  return code == kOk ? kFailed : code;
}

}  // namespace pando::ctl
