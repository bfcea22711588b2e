// What pandoctl's exit status means; scripts rely on it.
#ifndef PANDO_CLIENT_CTL_EXIT_CODE_H_
#define PANDO_CLIENT_CTL_EXIT_CODE_H_

namespace pando::ctl {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,         // the command ran and failed, or found something wrong
  kUsage = 2,          // the command line is wrong; nothing was done
  kUnreachable = 3,    // no node answers there
  kInterrupted = 130,  // Ctrl-C; what was done so far has been printed
};

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_EXIT_CODE_H_
