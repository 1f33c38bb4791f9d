/*
 * A library with thread-local data, which the dynamic linker allocates for each thread that asks for it.
 */

int *own_word(void);

int *own_word(void)
{
	static _Thread_local int word;

	return &word;
}
