/* A parent in state D until there is the file `on`, or its folder is gone: see storage.py. */
#include <sys/wait.h>
#include <unistd.h>

void read_of_dead_storage(void)
{
    pid_t child = vfork();
    if (child == 0) {
        while (access("on", F_OK) != 0 && access("hung", F_OK) == 0)
            usleep(100000);
        _exit(0);
    }
    waitpid(child, 0, 0);
}
