// A progress bar on stderr, if that is a terminal; else nothing. One thread.
#ifndef PANDO_CLIENT_CTL_PROGRESS_H_
#define PANDO_CLIENT_CTL_PROGRESS_H_

#include <cstdint>
#include <string>

namespace pando::ctl {

class Progress {
 public:
  Progress(uint64_t total, bool shown) : total_(total), shown_(shown) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Clears the bar.
  ~Progress();

  // Draws at most ten times a second.
  void Update(uint64_t done, const std::string& remark);

 private:
  uint64_t total_;
  bool shown_;
  bool drawn_ = false;
  int64_t next_ns_ = 0;
};

// Whether stderr is a terminal.
bool StderrIsTerminal();

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_PROGRESS_H_
