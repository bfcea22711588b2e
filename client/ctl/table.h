// Text tables: a header, rows, columns as wide as their widest cell. One thread.
//
//   Table table({"pages", "count"}, {Table::kLeft, Table::kRight});
//   table.Row({"free", Thousands(16384)});
//   std::cout << table.Text();
#ifndef PANDO_CLIENT_CTL_TABLE_H_
#define PANDO_CLIENT_CTL_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace pando::ctl {

class Table {
 public:
  enum Align : uint8_t { kLeft, kRight };

  // An empty header prints none.
  Table(std::vector<std::string> header, std::vector<Align> align);

  // Cells are made Printable: they may be what engines chose.
  void Row(std::vector<std::string> cells);
  // Each line ends with a newline and has no trailing spaces.
  std::string Text() const;

 private:
  std::vector<std::string> header_;
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;
};

// "1,234,567".
std::string Thousands(uint64_t value);
// "1 run", "1,200 runs".
std::string Counted(uint64_t value, const std::string& one, const std::string& many);
// "16.37 %"; "-" when the whole is 0.
std::string Percent(uint64_t part, uint64_t whole);
// "3 s", "2 min 5 s", "4 h 10 min".
std::string Duration(uint64_t milliseconds);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_TABLE_H_
