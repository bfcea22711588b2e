pando_bench(radix SOURCES radix_bench.cc DEPS pando_radix ZLIB::ZLIB PkgConfig::XXHASH)
