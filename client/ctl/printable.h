// Text of others, made fit for a terminal: names that engines chose, messages of nodes, lines of
// files. What could move a cursor, change a colour, fake a row or turn the direction of reading is
// written as its bytes instead.
//
//   "aspen\n7b\x1b[31m" becomes  aspen\x0a7b\x1b[31m
//
// Characters beyond ASCII stay as they are, if they are valid UTF-8. Any thread.
#ifndef PANDO_CLIENT_CTL_PRINTABLE_H_
#define PANDO_CLIENT_CTL_PRINTABLE_H_

#include <string>
#include <string_view>

namespace pando::ctl {

std::string Printable(std::string_view text);
// The same, but newlines stay: for messages that have several lines of our own.
std::string PrintableLines(std::string_view text);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_PRINTABLE_H_
