// Bytes of any kind to a TCP port. Fails the test if nobody listens there.
#ifndef PANDO_TESTS_TRANSFER_RAW_BYTES_H_
#define PANDO_TESTS_TRANSFER_RAW_BYTES_H_

#include <string>

#include "transfer/memory/unique_fd.h"

namespace pando {

// Connects to `address` (IPv4:PORT), again for a while if that is refused. Not valid: it is for
// good.
UniqueFd ConnectRaw(const std::string& address);
// Connects, sends all, and hangs up.
void SendRaw(const std::string& address, const std::string& bytes);

}  // namespace pando

#endif  // PANDO_TESTS_TRANSFER_RAW_BYTES_H_
