/* Loads a library that receives from a connection of the program, also one that binds to its own libraries first. */
#include "ground.h"

int main(int count, char **arguments)
{
	const int ways[] = { RTLD_NOW | RTLD_LOCAL, RTLD_NOW | RTLD_DEEPBIND };
	int ends[2];
	char got[8];

	(void)count;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int way = 0; way < 2; way++) {
		void *plugin = dlopen(arguments[1], ways[way]);
		long (*receive)(int, char *, unsigned long) = (long (*)(int, char *, unsigned long))dlsym(plugin, "plugin_receive");
		int (*end)(int) = (int (*)(int))dlsym(plugin, "plugin_close");

		for (int round = 0; round < 2; round++) {
			connection(ends);
			SAY(write(ends[0], "plugin", 6));
			SAY(receive(ends[1], got, 6));
			printf("%.6s\n", got);
			SAY(end(ends[1]));
			SAY(read(ends[0], got, 1));
			SAY(close(ends[0]));
		}
		dlclose(plugin);
	}
	return 0;
}
