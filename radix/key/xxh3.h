// xxHash, compiled into whoever includes this: the shared library's build is slower and its calls
// cannot be inlined. Internal to radix; included by .cc files only.
#ifndef PANDO_RADIX_KEY_XXH3_H_
#define PANDO_RADIX_KEY_XXH3_H_

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#define XXH_INLINE_ALL
#include <xxhash.h>
#pragma GCC diagnostic pop

#endif  // PANDO_RADIX_KEY_XXH3_H_
