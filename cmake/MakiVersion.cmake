# Run by each build, with -DSOURCE=… -DTEMPLATE=… -DOUTPUT=… -DVERSION=…: writes the source file that knows the version of
# the program, with the commit of a git checkout. The file keeps its time if nothing has changed.
set(MAKI_VERSION_TEXT "maki ${VERSION}")
if(EXISTS "${SOURCE}/.git")
  find_program(git git)
  if(git)
    execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=7 HEAD OUTPUT_VARIABLE commit RESULT_VARIABLE result
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(result EQUAL 0)
      string(APPEND MAKI_VERSION_TEXT " (${commit})")
    endif()
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
