// The steps of the sockets' side, as --list-steps prints them. Each is named once, in the code that
// takes it.
#ifndef PANDO_NODE_LOCAL_STEPS_H_
#define PANDO_NODE_LOCAL_STEPS_H_

#include <array>
#include <string_view>

namespace pando::local::step {

inline constexpr std::string_view kAccepted = "socket.accepted";
inline constexpr std::string_view kAttachFdsReceived = "attach.fds_received";
inline constexpr std::string_view kProcessWatched = "process.watched";
inline constexpr std::string_view kExtentsSent = "extent.sent";
inline constexpr std::string_view kAnswersSent = "answer.sent";
inline constexpr std::string_view kSessionClosed = "socket.closed";
inline constexpr std::string_view kProcessExited = "pidfd.fired";

inline constexpr std::array kAll = {kAccepted,    kAttachFdsReceived, kProcessWatched, kExtentsSent,
                                    kAnswersSent, kSessionClosed,     kProcessExited};

}  // namespace pando::local::step

#endif  // PANDO_NODE_LOCAL_STEPS_H_
