# Filled in with the packaging files: heedConfig.cmake, heed.pc.
