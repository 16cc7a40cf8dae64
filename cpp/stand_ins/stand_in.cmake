# Where a stand-in's library finds the others, and where it is installed.
function(warpstack_stand_in_library target)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN")
  install(TARGETS ${target} LIBRARY DESTINATION warpstack/lib)
endfunction()

# warpstack_stand_in(LIBRARY NAME SUFFIX [ABI VERSION SYMBOL]): a small library with the name that
# programs ask for, made of the folder's abi_shim.cpp, which leads to LIBRARY. With a version it has
# the symbol version of NVIDIA's library, and abi_shim.cpp knows it by warpstack_<folder>_abi.
function(warpstack_stand_in library name suffix)
  cmake_parse_arguments(PARSE_ARGV 3 STAND_IN "" "ABI" "")
  set(target warpstack_${name}${suffix})
  add_library(${target} SHARED abi_shim.cpp)
  # Nothing of the library is called here, and still it must be loaded.
  target_link_options(${target} PRIVATE -Wl,--no-as-needed)
  target_link_libraries(${target} PRIVATE ${library})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX ${suffix})
  warpstack_stand_in_library(${target})
  if(STAND_IN_ABI)
    get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    string(TOUPPER ${folder} macro)
    target_compile_definitions(${target} PRIVATE WARPSTACK_${macro}_ABI=${STAND_IN_ABI})
    set(map ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
    file(WRITE ${map} "lib${name}${suffix} { global: warpstack_${folder}_abi; local: *; };\n")
    target_link_options(${target} PRIVATE -Wl,--version-script=${map})
  endif()
endfunction()
