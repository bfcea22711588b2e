// What pandoctl writes to people and scripts. Nothing is lost without a word: whoever ends asks
// FinishOutput, so that a full disk behind stdout is a failure. Nothing throws. Main thread.
#ifndef PANDO_CLIENT_CTL_OUTPUT_H_
#define PANDO_CLIENT_CTL_OUTPUT_H_

#include <string_view>

namespace pando::ctl {

// To stdout, as it is.
void Say(std::string_view text);
// To stderr, after the program's name and before a newline. What could drive a terminal is escaped:
// messages quote nodes and files.
void Complain(std::string_view message);

// Flushes stdout. Returns `code`, or kFailed instead of kOk, with a complaint, if something that
// was said did not reach its end.
int FinishOutput(int code);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_OUTPUT_H_
