/* SPDX-License-Identifier: MIT */
#include "kernel_words.h"

#include <stddef.h>
#include <string.h>

static const char *const kernel_words[] = {
	"WARNING:",
	"BUG:",
	"BUG ",
	"Oops",
	"hung task",
	"blocked for more than",
	"refcount_t:",
	"general protection fault",
	"KASAN",
	"UBSAN",
	"unregister_netdevice: waiting",
	"soft lockup",
	"hard LOCKUP",
	"rcu_sched self-detected",
	"detected stall",
	"Kernel panic",
	"kernel panic",
	"Unable to handle",
	"unable to handle",
	"__rxe_cleanup",
	"scheduling while atomic",
};

/* Who looks at a guest that hangs ends it by an NMI. */
static const char asked_for[] = "NMI: Not continuing";

bool kernel_complains(const char *text)
{
	if (text && strstr(text, asked_for))
		return false;
	for (size_t i = 0; text && i < sizeof(kernel_words) / sizeof(kernel_words[0]); i++)
		if (strstr(text, kernel_words[i]))
			return true;
	return false;
}
